"""`platformctl settings`: every setting of the kernel and of the installed plugins."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.options import AsJson
from cli.texts import App, examples

if TYPE_CHECKING:
    from kernel.platform import Platform
    from kernel.settings.loading import Settings, SettingsLoader
    from kernel.settings.shown import ShownSetting

app = App()


@app.command(
    name="settings",
    epilog=examples(
        ("platformctl settings", "all settings and their values"),
        ("platformctl settings smtp", "only settings about mail"),
        ("platformctl settings --wide | less -S", "one line per setting"),
        ("platformctl settings --markdown", "the table in docs/reference/settings.md"),
        after="Settings can also be in PLATFORM_HOME/config.yaml, in a section for each owner, "
        "such as kernel: {port: 8080}. Environment variables take precedence.",
    ),
)
def show(
    word: Annotated[
        str | None,
        typer.Argument(
            metavar="WORD",
            help="Show only settings that contain a word starting with this.",
            show_default=False,
        ),
    ] = None,
    wide: Annotated[bool, typer.Option("--wide", help="One line for each setting, however long.")] = False,
    as_json: AsJson = False,
    markdown: Annotated[
        bool,
        typer.Option(
            "--markdown", help="Print a Markdown table of defaults instead of this machine's values."
        ),
    ] = False,
) -> None:
    """Show every setting with its environment variable, current value and meaning."""
    from cli import console, running

    settings = _about(word, running.run(_settings()))
    if markdown:
        typer.echo(as_markdown(settings))
    elif as_json:
        console.print_json([{**asdict(item), "variable": variable_of(item)} for item in settings])
    elif wide or not console.out().is_terminal:
        rows = [
            (item.owner, variable_of(item), item.value, item.source, item.description) for item in settings
        ]
        console.print_table(
            ("owner", "variable", "value", "source", "meaning"), rows, "No settings.", wide=True
        )
    else:
        _print(settings)


def _about(word: str | None, settings: list[ShownSetting]) -> list[ShownSetting]:
    """Settings in whose owner, name, variable or description some word begins with `word`.

    Raises Missing if there are none.
    """
    from cli.failures import Missing

    if word is None:
        return settings
    begins = re.compile(rf"(?<![^\W_]){re.escape(word)}", re.IGNORECASE)  # "rate" must not match "separated"
    fitting = [s for s in settings if begins.search(f"{s.owner} {s.name} {variable_of(s)} {s.description}")]
    if not fitting:
        raise Missing(
            f"no setting contains a word that starts with '{word}'",
            "'platformctl settings' shows all of them.",
        )
    return fitting


def _print(settings: list[ShownSetting]) -> None:
    """Print a heading per owner, and each variable unbroken with its meaning below."""
    from rich.padding import Padding
    from rich.text import Text

    from cli import console

    out, owner = console.out(), ""
    for item in settings:
        if item.owner != owner:
            out.print(Text(item.owner, style="bold underline"))
            owner = item.owner
        out.print(
            Padding(Text.assemble((variable_of(item), "cyan"), "  ", item.value or "(not set)"), (0, 0, 0, 2))
        )
        out.print(Padding(Text(item.description, style="dim"), (0, 0, 0, 6)))


async def _settings() -> list[ShownSetting]:
    from cli import console, running

    async with running.explained_platform() as platform:
        for record in platform.plugins:
            if record.status in ("failed", "refused"):
                console.warn(f"The settings of '{record.name}' are missing here: {record.reason}")
        return list(collect(platform))


def collect(platform: Platform) -> Iterator[ShownSetting]:
    """The kernel's settings, the command line's, then each loaded plugin's."""
    from kernel.settings.shown import show_loaded

    for loader, owner, cls in _classes(platform):
        yield from show_loaded(loader, owner, cls)


def _classes(platform: Platform) -> Iterator[tuple[SettingsLoader, str, type[Settings]]]:
    from cli.settings import CliSettings
    from kernel.hooks import hookspecs
    from kernel.plugins.declarations import DECLARATIONS
    from kernel.plugins.plugin_settings import PLUGIN_SETTINGS
    from kernel.settings.loading import KernelSettings

    loader = platform.resource(PLUGIN_SETTINGS).loader
    owners: list[tuple[str, type[Settings]]] = [("kernel", KernelSettings), ("cli", CliSettings)]
    for owner, cls in [*owners, *platform.resource(DECLARATIONS).of(hookspecs.register_settings)]:
        yield loader, owner, cls


def every_value(platform: Platform) -> Iterator[Any]:
    """The plain values of all settings, including secrets."""
    for loader, owner, cls in _classes(platform):
        values = loader.load(owner, cls)
        yield from (getattr(values, name) for name in cls.env_names())


def variable_of(item: ShownSetting) -> str:
    """The environment variables that set it, as text, strongest first."""
    return " or ".join(item.variables)


def as_markdown(settings: list[ShownSetting]) -> str:
    """The reference table: one section for each owner."""
    lines = []
    for owner in dict.fromkeys(item.owner for item in settings):
        lines += [f"**{owner}**", "", "| Variable | Default | Meaning |", "|---|---|---|"]
        lines += [_row(item) for item in settings if item.owner == owner]
        lines.append("")
    return "\n".join(lines).rstrip()


def _row(item: ShownSetting) -> str:
    default = f"`{item.default}`" if item.default else ""
    return f"| `{variable_of(item)}` | {default} | {item.description.replace('|', chr(92) + '|')} |"
