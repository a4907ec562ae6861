"""`platformctl plugins`: what is installed, why something is out of service, and changes to it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.options import AsJson
from cli.texts import examples

if TYPE_CHECKING:
    from kernel.platform import Platform
    from kernel.plugins import PluginRecord

app = typer.Typer(
    rich_markup_mode="rich",
    no_args_is_help=True,
    help="Plugins are Python packages with an entry point in the group 'platform.plugins'.",
    epilog=examples(
        ("platformctl plugins list", "what is installed, and its state"),
        ("platformctl plugins why NAME", "what a plugin does, or why not"),
        ("platformctl plugins install NAME", "from the index, a wheel or a folder"),
        after="PLATFORM_PLUGINS_DISABLED=a,b keeps plugins from being loaded.",
    ),
)


@dataclass(frozen=True)
class Shown:
    """A plugin as the commands show it."""

    name: str
    version: str
    status: str
    reason: str | None
    distribution: str | None
    description: str
    requires: tuple[str, ...] = ()
    hooks: list[str] = field(default_factory=list)
    settings: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@app.command(name="list", epilog=examples(("platformctl plugins list --json", "for a program")))
def show(as_json: AsJson = False) -> None:
    """List plugins, their state, and the reason of each that is out of service."""
    from cli import console, running

    found = running.run(_shown())
    if as_json:
        console.print_json([asdict(item) for item in found])
        return
    rows = [
        (p.name, p.version, console.styled_status(p.status), p.distribution, p.reason or p.description)
        for p in found
    ]
    console.print_table(("name", "version", "status", "package", "about"), rows, "No plugin is installed.")


@app.command(epilog=examples(("platformctl plugins why rag", "exit code 1 when it is out of service")))
def why(name: Annotated[str, typer.Argument(help="The plugin's name.")], as_json: AsJson = False) -> None:
    """Explain one plugin: its state and reason, what it requires, implements and can be told."""
    from cli import console, running
    from cli.failures import Missing

    found = running.run(_shown())
    plugin = next((item for item in found if item.name == name), None)
    if plugin is None:
        known = ", ".join(item.name for item in found)
        raise Missing(f"no plugin '{name}' is installed", f"Installed: {known}.")
    if as_json:
        console.print_json(asdict(plugin))
    else:
        _explain(plugin)
    if plugin.status in ("failed", "refused"):
        raise typer.Exit(1)


def _explain(plugin: Shown) -> None:
    from rich.text import Text

    from cli import console

    out = console.out()
    status = console.styled_status(plugin.status)
    out.print(Text.assemble((f"{plugin.name} {plugin.version}".strip(), "bold"), "  ", status))
    facts = [
        ("why", plugin.reason or ""),
        ("about", plugin.description),
        ("package", plugin.distribution or ""),
        ("requires", ", ".join(plugin.requires)),
        ("hooks", ", ".join(plugin.hooks)),
        ("settings", ", ".join(plugin.settings)),
        ("problems", "; ".join(plugin.problems)),
        ("remedy", _remedy(plugin)),
    ]
    console.print_facts(facts)


def _remedy(plugin: Shown) -> str:
    if plugin.status not in ("failed", "refused"):
        return ""
    off = f"PLATFORM_PLUGINS_DISABLED={plugin.name}"
    if plugin.distribution == "platform-kernel":
        return f"repair what the reason names, or turn it off: {off}"
    return (
        f"repair what the reason names, turn it off ({off}), or: platformctl plugins uninstall {plugin.name}"
    )


async def _shown() -> list[Shown]:
    from cli import running
    from kernel.plugins import read_report

    async with running.explained_platform() as platform:
        report = read_report(platform.settings.home)
        facts = [_facts(platform, record) for record in platform.plugins]
    return sorted((_with_report(item, report) for item in facts), key=lambda item: item.name)


def _facts(platform: Platform, record: PluginRecord) -> Shown:
    loaded = record.status == "loaded"
    callers = platform.host.manager.get_hookcallers(record.instance) if loaded else None
    return Shown(
        name=record.name,
        version=record.version,
        status=record.status,
        reason=record.reason,
        distribution=record.distribution,
        description=record.description,
        requires=record.requires,
        hooks=sorted(caller.name for caller in callers or ()),
        settings=_variables(record) if loaded else [],
        problems=list(record.problems),
    )


def _variables(record: PluginRecord) -> list[str]:
    declare = getattr(record.instance, "register_settings", None)
    cls = declare() if declare else None
    return [names[0] for names in cls.env_names().values()] if cls else []


def _with_report(item: Shown, report: dict[str, Any] | None) -> Shown:
    """What only a start shows (opening resources, `on_start`) comes from the last start of a server."""
    from dataclasses import replace

    entries = report["plugins"] if report else []
    entry = next((e for e in entries if e["name"] == item.name and e["version"] == item.version), None)
    if report is None or entry is None or item.status != "loaded" or entry["status"] == "loaded":
        return item
    reason = f"{entry['reason']} (at the server's start, {report['started_at']})"
    return replace(item, status=entry["status"], reason=reason)


@app.command(epilog=examples(("platformctl plugins commands", "what to type after 'platformctl'")))
def commands() -> None:
    """List the commands that plugins add to platformctl."""
    from cli import console
    from cli.extensions import commands_of_plugins
    from cli.main import ENTRIES

    own = {entry.name for entry in ENTRIES}
    found = commands_of_plugins()
    rows = [
        (name, _summary(group), "hidden by a built-in one" if name in own else "")
        for name, group in sorted(found.items())
    ]
    console.print_table(("command", "about", "note"), rows, "No plugin adds a command.")


def _summary(group: typer.Typer) -> str:
    return (typer.main.get_group(group).help or "").strip().partition("\n")[0]


Offline = Annotated[
    bool, typer.Option("--offline", help="Ask no index; build folders with what is installed here.")
]
FindLinks = Annotated[
    str | None, typer.Option("--find-links", metavar="FOLDER", help="Look for wheels here as well.")
]


@app.command(
    epilog=examples(
        ("platformctl plugins install acme-plugin", "from the configured index"),
        ("platformctl plugins install ./acme_plugin-1.0-py3-none-any.whl", "a wheel"),
        ("platformctl plugins install ./acme --offline", "a folder, without a network"),
        after="It is refused, with nothing changed, when it would change a package the platform runs on,\n"
        "or when it brings no plugin. Takes effect at the next start.",
    )
)
def install(
    wanted: Annotated[str, typer.Argument(metavar="NAME|PATH", help="A requirement, a wheel or a folder.")],
    upgrade: Annotated[bool, typer.Option("--upgrade", "-U", help="Take a newer version.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be installed.")] = False,
    offline: Offline = False,
    find_links: FindLinks = None,
) -> None:
    """Install a plugin, with every package that is there now held at its version."""
    from cli.installing import Pip, install_plugin

    install_plugin(wanted, Pip(offline=offline, find_links=find_links, upgrade=upgrade), dry_run=dry_run)


@app.command(epilog=examples(("platformctl plugins uninstall acme", "its tables and data stay")))
def uninstall(
    name: Annotated[str, typer.Argument(help="The plugin's name, or its package's.")],
    force: Annotated[bool, typer.Option("--force", help="Even when other plugins require it.")] = False,
) -> None:
    """Uninstall a plugin's package. Its tables, settings and secrets stay."""
    from cli import running
    from cli.installing import uninstall_plugin

    uninstall_plugin(name, running.run(_shown()), force=force)


@app.command(epilog=examples(("platformctl plugins release acme", "and restart the platform")))
def release(name: Annotated[str, typer.Argument(help="The plugin's name.")]) -> None:
    """Let a plugin try again that was kept out because it blocked the whole process while it started."""
    from cli import console, running
    from cli.failures import Missing
    from kernel.watchdog import Quarantine

    quarantine = Quarantine(running.kernel_settings().home)
    if not quarantine.release(name):
        kept_out = ", ".join(sorted(quarantine.entries())) or "none"
        raise Missing(f"the plugin '{name}' is not kept out", f"Kept out: {kept_out}.")
    console.done(f"'{name}' is tried again at the next start")
