"""What `platformctl serve` prints when it is ready: where to go next."""

from __future__ import annotations

import asyncio
import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cli import console
from cli.plugin_facts import disabled_plugins
from cli.settings import CliSettings
from kernel import __version__

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from kernel.platform import Platform
    from kernel.process.serve import Ports
    from kernel.settings.loading import SettingsLoader

_FIRST_CODE = "first-account"  # the secret that `POST /v1/auth/first-account` asks for


@dataclass(frozen=True)
class Facts:
    """Facts about a platform that has just started; `first_code` is None once there is an administrator."""

    host: str
    home: Path
    first_code: str | None
    loaded: int
    out_of_service: tuple[tuple[str, str], ...]
    registration_open: bool
    command: str

    @property
    def reachable_host(self) -> str:
        """An address to connect to: loopback if it listens on all."""
        return {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(self.host, self.host)

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


async def gather_facts(platform: Platform, loader: SettingsLoader) -> Facts:
    """Collect the facts."""
    off = await disabled_plugins(platform)
    bad = [(r.name, r.reason or "") for r in platform.plugins if r.status in ("failed", "refused")]
    return Facts(
        host=platform.settings.host,
        home=platform.settings.home,
        first_code=await _first_code(platform),
        loaded=sum(record.status == "loaded" and record.name not in off for record in platform.plugins),
        out_of_service=tuple(bad),
        registration_open=platform.settings.registration_mode == "open",
        command=loader.load("cli", CliSettings).command,
    )


async def _first_code(platform: Platform) -> str | None:
    """The code that makes the first administrator, if there is none."""
    if await platform.database.read(_is_administered):
        return None
    return await asyncio.to_thread(platform.secrets.ensure, _FIRST_CODE, 18)


def _is_administered(session: Session) -> bool:
    from sqlalchemy import select

    from kernel.auth.models import Account

    mine = (Account.role == "admin") & Account.deleted_at.is_(None)
    return session.scalar(select(Account.id).where(mine).limit(1)) is not None


def welcome(facts: Facts, ports: Ports) -> None:
    """Print the welcome to standard output."""
    host = f"[{facts.reachable_host}]" if ":" in facts.reachable_host else facts.reachable_host
    url = f"http://{host}:{ports.main}"
    pages = [(title, f"http://{host}:{port}") for title, port in ports.published.items()]
    out = console.out()
    out.print(f"\n[bold green]Platform {__version__} is ready[/bold green]\n")
    for label, value in [*pages, *_places(facts, url)]:
        out.print(f"  [bold]{label:<10}[/bold] {value}", soft_wrap=True)
    for line in _remarks(facts, url):
        out.print(f"\n  {line}", soft_wrap=True)
    out.print("\n  Stop with Ctrl-C.\n")
    out.file.flush()


def _places(facts: Facts, url: str) -> list[tuple[str, str]]:
    plugins = f"{facts.loaded} loaded"
    if facts.out_of_service:
        plugins += f", [red]{len(facts.out_of_service)} out of service[/red]"
    return [
        ("API", url),
        ("Try it", f"{url}/docs"),
        ("Health", f"{url}/health"),
        ("Home", str(facts.home)),
        ("Plugins", plugins),
    ]


def _remarks(facts: Facts, url: str) -> list[str]:
    command = facts.command
    remarks = [
        f"[red]{name}[/red]: {_escaped(reason)}\n    → {command} plugins why {name}"
        for name, reason in facts.out_of_service
    ]
    if facts.first_code:
        remarks.append(
            f"There is no administrator yet. Make the first account in a browser:\n"
            f"    {url}/#first-account={facts.first_code}\n"
            f"  or in another terminal:\n"
            f"    {command} users create YOURNAME --admin"
        )
    if not facts.is_loopback and facts.registration_open:
        remarks.append(
            "[yellow]Other machines can reach this address and register accounts.[/yellow]\n"
            "    Set PLATFORM_REGISTRATION_MODE=closed to prevent that."
        )
    return remarks


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)
