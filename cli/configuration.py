"""`platformctl settings`: every setting of the kernel and of the installed plugins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.options import AsJson
from cli.texts import examples

if TYPE_CHECKING:
    from kernel.platform import Platform
    from kernel.settings import Settings, SettingsLoader

app = typer.Typer(rich_markup_mode="rich")


@dataclass(frozen=True)
class Setting:
    """One field of a settings class; `value` is None in a description that is independent of a machine."""

    owner: str
    name: str
    variable: str
    default: str
    description: str
    value: str | None = None


@app.command(
    name="settings",
    epilog=examples(
        ("platformctl settings", "values in effect here"),
        ("platformctl settings --markdown", "the table of the README"),
        after="A variable of the environment wins over PLATFORM_HOME/config.yaml, with a section for each\n"
        "owner with the names as keys:  [dim]kernel: {port: 8080}[/dim]",
    ),
)
def show(
    as_json: AsJson = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="A Markdown table, without this machine's values.")
    ] = False,
) -> None:
    """Show every setting with its variable, its value in effect and its meaning."""
    from cli import console, running

    found = running.run(_settings())
    if markdown:
        typer.echo(as_markdown(found))
    elif as_json:
        console.print_json([asdict(item) for item in found])
    else:
        rows = [(item.owner, item.variable, item.value, item.description) for item in found]
        console.print_table(("owner", "variable", "value", "meaning"), rows, "No settings.")


async def _settings() -> list[Setting]:
    from cli import running

    async with running.explained_platform() as platform:
        return list(collect(platform))


def collect(platform: Platform) -> Iterator[Setting]:
    """The kernel's settings, the command line's, then each loaded plugin's."""
    from cli.settings import CliSettings
    from kernel.settings import KernelSettings

    owners: list[tuple[str, type[Settings]]] = [("kernel", KernelSettings), ("cli", CliSettings)]
    for owner, cls in [*owners, *platform.declare("register_settings")]:
        yield from _of_class(platform.loader, owner, cls)


def _of_class(loader: SettingsLoader, owner: str, cls: type[Settings]) -> Iterator[Setting]:
    values = loader.load(owner, cls)
    for name, variables in cls.env_names().items():
        field = cls.model_fields[name]
        yield Setting(
            owner=owner,
            name=name,
            variable=" or ".join(variables),
            default=_shown(field.default),
            description=field.description or "",
            value=_shown(getattr(values, name)),
        )


def _shown(value: Any) -> str:
    """The value as an operator would write it; a secret stays hidden."""
    from pydantic import SecretStr

    if value is None or value == "":
        return ""
    if isinstance(value, SecretStr):
        return "***"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def as_markdown(found: list[Setting]) -> str:
    """The reference table: one section for each owner."""
    lines = []
    for owner in dict.fromkeys(item.owner for item in found):
        lines += [f"**{owner}**", "", "| Variable | Default | Meaning |", "|---|---|---|"]
        lines += [_row(item) for item in found if item.owner == owner]
        lines.append("")
    return "\n".join(lines).rstrip()


def _row(item: Setting) -> str:
    default = f"`{item.default}`" if item.default else ""
    return f"| `{item.variable}` | {default} | {item.description.replace('|', chr(92) + '|')} |"
