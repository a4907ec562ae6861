"""`platformctl plugins`: what is installed, why something is out of service, and changes to it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.options import AsJson
from cli.plugin_facts import PluginFacts, disabled_plugins, outgrown, variables_of
from cli.texts import App, examples
from kernel.version import DISTRIBUTION

if TYPE_CHECKING:
    from kernel.platform import Platform
    from kernel.plugins.loading import PluginRecord

_OF_MANIFESTS = "Webhook manifests are listed by: platformctl manifests list"

app = App(
    no_args_is_help=True,
    help="Plugins are Python packages with an entry point in the group 'platform.plugins'.",
    epilog=examples(
        ("platformctl plugins list", "installed plugins and their state"),
        ("platformctl plugins why NAME", "what a plugin does, or why it is out of service"),
        ("platformctl plugins install NAME", "from the catalog, the package index, a wheel or a folder"),
        ("platformctl plugins new NAME", "start your own plugin"),
        after="Set PLATFORM_PLUGINS_DISABLED=a,b to leave plugins a and b out.",
    ),
)


@app.command(name="list", epilog=examples(("platformctl plugins list --json", "as JSON")))
def show(as_json: AsJson = False) -> None:
    """List plugins, their state and why some are out of service; the package only for added ones."""
    from cli import console, running

    plugins = running.run(_plugin_facts())
    if as_json:
        console.print_json([asdict(item) for item in plugins])
        return
    packages = ["" if p.distribution == DISTRIBUTION else p.distribution or "" for p in plugins]
    package = ("package",) if any(packages) else ()
    rows = [
        (
            *(p.name, p.version, console.styled_status(p.status)),
            *([name] if package else []),
            p.reason or p.description,
        )
        for p, name in zip(plugins, packages, strict=True)
    ]
    console.print_table(("name", "version", "status", *package, "about"), rows, "No plugin is installed.")


@app.command(epilog=examples(("platformctl plugins why acme_notes", "exit code 1 if it is out of service")))
def why(name: Annotated[str, typer.Argument(help="The plugin's name.")], as_json: AsJson = False) -> None:
    """Explain one plugin: its state and why, what it requires, its hooks and settings."""
    from cli import console, running
    from cli.failures import Missing

    plugins = running.run(_plugin_facts())
    plugin = next((item for item in plugins if item.name == name), None)
    if plugin is None:
        names = ", ".join(item.name for item in plugins)
        raise Missing(f"no plugin '{name}' is installed", f"Installed: {names}. {_OF_MANIFESTS}")
    if as_json:
        console.print_json(asdict(plugin))
    else:
        _explain(plugin)
    if plugin.status in ("failed", "refused"):
        raise typer.Exit(1)


def _explain(plugin: PluginFacts) -> None:
    from rich.text import Text

    from cli import console

    out = console.out()
    status = console.styled_status(plugin.status)
    out.print(Text.assemble((f"{plugin.name} {plugin.version}".strip(), "bold"), "  ", status))
    facts = [
        ("why", plugin.reason or ""),
        ("where", plugin.place or ""),
        ("about", plugin.description),
        ("package", plugin.distribution or ""),
        ("requires", ", ".join(plugin.requires)),
        ("hooks", ", ".join(plugin.hooks)),
        ("settings", ", ".join(plugin.settings)),
        ("problems", "; ".join(plugin.problems)),
        ("remedy", _remedy(plugin)),
    ]
    console.print_facts(facts)


def _remedy(plugin: PluginFacts) -> str:
    if plugin.enable_with is not None:
        return f"enable it in the web client (Plugins), or as an administrator: {plugin.enable_with}"
    if plugin.status == "disabled":
        return "remove it from PLATFORM_PLUGINS_DISABLED, then restart the platform"
    if plugin.status == "not_installed":
        return "run the command given above, then restart the platform"
    if plugin.status not in ("failed", "refused"):
        return ""
    off = f"PLATFORM_PLUGINS_DISABLED={plugin.name}"
    if plugin.distribution == DISTRIBUTION:
        return f"fix the cause, or turn the plugin off: {off}"
    return (
        f"fix the cause given above, turn the plugin off ({off}), "
        f"or run: platformctl plugins uninstall {plugin.name}"
    )


async def _plugin_facts() -> list[PluginFacts]:
    from cli import running
    from kernel.plugins.loading import read_report

    async with running.explained_platform() as platform:
        report = read_report(platform.settings.home)
        facts = [_with_report(_facts(platform, record), report) for record in platform.plugins]
        disabled, reasons = await disabled_plugins(platform), await outgrown(platform)
    plugins = (_with_switch(_with_tables(item, reasons), disabled) for item in facts)
    return sorted(plugins, key=lambda item: item.name)


def _facts(platform: Platform, record: PluginRecord) -> PluginFacts:
    loaded = record.status == "loaded"
    return PluginFacts(
        name=record.name,
        version=record.version,
        status=record.status,
        reason=record.reason,
        distribution=record.distribution,
        description=record.description,
        place=record.place,
        requires=record.requires,
        hooks=platform.hooks.implemented_by(record.name),
        settings=variables_of(record) if loaded else [],
        problems=[*record.problems, *record.failures],
    )


def _with_report(item: PluginFacts, report: dict[str, Any] | None) -> PluginFacts:
    """Add what only a start shows (opening resources, `on_start`), from the last server start."""
    from dataclasses import replace

    entries = report["plugins"] if report else []
    entry = next((e for e in entries if e["name"] == item.name and e["version"] == item.version), None)
    if report is None or entry is None or item.status != "loaded" or entry["status"] == "loaded":
        return item
    reason = f"{entry['reason']} (at the server's start, {report['started_at']})"
    return replace(item, status=entry["status"], reason=reason, place=entry.get("place"))


def _with_tables(item: PluginFacts, reasons: Mapping[str, str]) -> PluginFacts:
    """Tell what the next start would show of a plugin that is older than its tables."""
    from dataclasses import replace

    reason = reasons.get(item.name)
    return (
        item if reason is None or item.status != "loaded" else replace(item, status="failed", reason=reason)
    )


def _with_switch(item: PluginFacts, disabled: Mapping[str, str]) -> PluginFacts:
    """Mark a plugin that an administrator or the plugin itself has disabled."""
    from dataclasses import replace

    reason = disabled.get(item.name)
    if reason is None or item.status != "loaded":
        return item
    request = f"POST /v1/plugins/{item.name}/enable"
    return replace(item, status="disabled", reason=reason, enable_with=request)


_HIDDEN = "hidden by a built-in command"


@app.command(epilog=examples(("platformctl plugins commands", "what you can type after 'platformctl'")))
def commands() -> None:
    """List the commands that plugins add to platformctl."""
    from cli import console
    from cli.extensions import commands_of_plugins
    from cli.main import ENTRIES

    plugin_commands = commands_of_plugins()
    own = {name for name, _ in ENTRIES} | {one.name for one in plugin_commands if one.built_in}
    rows = [
        (one.name, _summary(one.group), "" if one.built_in or one.name not in own else _HIDDEN)
        for one in sorted(plugin_commands, key=lambda one: one.name)
    ]
    console.print_table(("command", "about", "note"), rows, "No plugin adds a command.")


def _summary(group: typer.Typer) -> str:
    return (typer.main.get_group(group).help or "").strip().partition("\n")[0]


Offline = Annotated[
    bool, typer.Option("--offline", help="Use no package index; build with the packages installed here.")
]
FindLinks = Annotated[
    str | None, typer.Option("--find-links", metavar="FOLDER", help="Also look for wheels in this folder.")
]


@app.command(
    epilog=examples(
        ("platformctl plugins install acme-plugin", "from the catalog or the package index"),
        ("platformctl plugins install acme --from https://platform.example.org", "from its catalog"),
        ("platformctl plugins install acme --offline --find-links wheels", "from a folder of wheels"),
        ("platformctl plugins install ./acme-1.0-py3-none-any.whl", "a wheel, or a folder"),
        after="First you see what the plugin declares, what the dependency graph says, and what pip would "
        "install. To find out, the plugin is started in its own process with an empty home; this runs "
        "its code, so install only what you trust. If it conflicts with installed packages, "
        "contains no plugin, or does not start, nothing is installed. If it does not start once it is "
        "installed, the previous version is restored. The platform loads it at its next start.",
    )
)
def install(
    spec: Annotated[
        str, typer.Argument(metavar="NAME|PATH", help="Name in the catalog or package, wheel or folder.")
    ],
    upgrade: Annotated[bool, typer.Option("--upgrade", "-U", help="Install a newer version.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be installed.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask for confirmation.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Install it even if it does not start or its dependencies fail.")
    ] = False,
    address: Annotated[
        str | None,
        typer.Option("--from", metavar="URL", help="Look the name up in the catalog of this platform."),
    ] = None,
    offline: Offline = False,
    find_links: FindLinks = None,
) -> None:
    """Install a plugin without changing the version of any installed package."""
    from cli.installing import How, install_plugin
    from cli.pip import Pip

    how = How(dry_run=dry_run, yes=yes, force=force, address=address)
    install_plugin(spec, Pip(offline=offline, find_links=find_links, upgrade=upgrade), how)


@app.command(
    hidden=True,
    epilog=examples(("platformctl plugins trial acme --to FILE", "run in its own home by 'install'")),
)
def trial(
    names: Annotated[list[str], typer.Argument(help="Names of plugins.")],
    to: Annotated[Path, typer.Option("--to", help="File to write the result to.")],
) -> None:
    """Start everything and write out what these plugins declare; `install` runs this in a separate home."""
    import json

    from cli import running
    from cli.trial import declare

    to.write_text(json.dumps(running.run(declare(names))), encoding="utf-8")


@app.command(epilog=examples(("platformctl plugins uninstall acme", "its tables and data are kept")))
def uninstall(
    name: Annotated[str, typer.Argument(help="Name of the plugin or of its package.")],
    force: Annotated[
        bool, typer.Option("--force", help="Uninstall even if other plugins require it.")
    ] = False,
) -> None:
    """Uninstall a plugin's package. Its tables, settings and secrets are kept."""
    from cli import running
    from cli.uninstalling import uninstall_plugin

    uninstall_plugin(name, running.run(_plugin_facts()), force=force)


@app.command(
    epilog=examples(
        ("platformctl plugins new acme-notes", "creates the folder acme-notes here"),
        ("platformctl plugins new acme-notes --into ~/src", "or elsewhere"),
    )
)
def new(
    name: Annotated[str, typer.Argument(help="Name of the plugin, such as acme-notes.")],
    into: Annotated[
        Path | None,
        typer.Option(
            "--into", metavar="FOLDER", help="Folder to create it in; the current one when omitted."
        ),
    ] = None,
) -> None:
    """Create a small working plugin package, with tests, to start from."""
    from cli import console
    from cli.scaffolding import write_plugin

    written = write_plugin(name, into or Path.cwd())
    folder = written[0].parent
    for path in written:
        console.note(str(path.relative_to(folder.parent)))
    python = quote(sys.executable)
    steps = [f"cd {quote(str(folder.absolute()))}", f"{python} -m pytest"]
    if find_spec("pytest") is None:
        steps.insert(1, f"{python} -m pip install 'platform-kernel[testing]'")
    console.done(f"{folder.name} contains the new plugin. Next: {' && '.join(steps)}")


@app.command(epilog=examples(("platformctl plugins release acme", "then restart the platform")))
def release(name: Annotated[str, typer.Argument(help="The plugin's name.")]) -> None:
    """Unblock a plugin that was blocked because it froze the process while starting."""
    from cli import console, running
    from cli.failures import Missing
    from kernel.plugins.watchdog import Quarantine

    quarantine = Quarantine(running.kernel_settings().home)
    if not quarantine.release(name):
        kept_out = ", ".join(sorted(quarantine.entries())) or "none"
        raise Missing(f"the plugin '{name}' is not blocked", f"Blocked plugins: {kept_out}.")
    console.done(f"'{name}' will be loaded again at the next start")
