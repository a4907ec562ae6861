"""`platformctl sources`: sources of knowledge bases on a running platform, and a plugin for a new kind."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cli.options import AsJson
from cli.texts import App, examples

Base = Annotated[str, typer.Argument(help="Name or id of the knowledge base.", metavar="KB")]
Id = Annotated[str, typer.Argument(help="The source's id: see 'platformctl sources list'.", metavar="SOURCE")]

app = App(
    no_args_is_help=True,
    help="Keep knowledge bases in step with folders, repositories and servers.",
    epilog=examples(
        ("platformctl sources add Handbook --kind folder --set path=/srv/policies", "add a folder"),
        ("platformctl sources run SOURCE --dry", "what a run would change"),
        after="Sign in first, with 'platformctl login URL'.",
    ),
)


@app.command(name="list", epilog=examples(("platformctl sources list Handbook", "with the last run of each")))
def list_sources(base: Base, as_json: AsJson = False) -> None:
    """List the sources of a knowledge base."""
    from builtin_plugins.sources.commands.calls import sources_of
    from cli import console, running

    items = running.run(sources_of(base))
    if as_json:
        console.print_json(items)
        return
    rows = [
        (one["id"], one["name"], one["kind"], _state(one), str(one["items"].get("stored", 0)), _next(one))
        for one in items
    ]
    console.print_table(("id", "name", "kind", "state", "documents", "next run"), rows, "There is no source.")
    for one in items:
        if one["problem"]:
            console.note(f"{one['name']}: {one['problem']}")


@app.command(
    epilog=examples(
        (
            "platformctl sources add Rules --kind folder --set path=/srv/rules",
            "a folder of the server",
        ),
        (
            "platformctl sources add Docs --kind git --set url=https://git.example/docs",
            "a repository",
        ),
    )
)
def add(
    base: Base,
    kind: Annotated[str, typer.Option(help="The kind of source, such as folder or git.")],
    name: Annotated[str | None, typer.Option(help="Its name; the kind when omitted.")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="A setting, as NAME=VALUE.")] = None,
    include: Annotated[list[str] | None, typer.Option(help="Only paths that fit, such as '*.md'.")] = None,
    exclude: Annotated[list[str] | None, typer.Option(help="Not those that fit.")] = None,
    media_types: Annotated[
        list[str] | None, typer.Option("--media-type", help="Only these, such as 'text/*'.")
    ] = None,
    max_size_mb: Annotated[float | None, typer.Option(min=0, help="Nothing larger.")] = None,
    max_age_days: Annotated[int | None, typer.Option(min=1, help="Nothing that is older.")] = None,
    schedule: Annotated[str | None, typer.Option(help="Five cron fields, or @hourly, @daily.")] = None,
    sign_in_groups: Annotated[
        str | None,
        typer.Option(
            help="id or name: a group there is the group of the sign-in with the same. Only as mapped when "
            "omitted."
        ),
    ] = None,
    secret: Annotated[
        bool, typer.Option("--secret", help="Read its credential from standard input.")
    ] = False,
    untried: Annotated[bool, typer.Option("--untried", help="Add it even if it can't be read.")] = False,
) -> None:
    """Try a source and add it; its first run begins at once."""
    import sys

    from builtin_plugins.sources.commands.calls import add_source
    from cli import console, running

    body: dict[str, Any] = {
        "kind": kind,
        "name": name or kind,
        "settings": dict(_pair(one) for one in settings or ()),
        "filters": {
            "include": include or [],
            "exclude": exclude or [],
            "media_types": media_types or [],
            "max_size_mb": max_size_mb,
            "max_age_days": max_age_days,
        },
        "schedule": schedule,
        "sign_in_groups": sign_in_groups,
    }
    if secret:
        body["secret"] = sys.stdin.read().strip()
    made = running.run(add_source(base, body, untried=untried))
    console.done(f"Added {made['name']} as {made['id']}; its first run has begun")


@app.command(epilog=examples(("platformctl sources test SOURCE", "can it be listed?")))
def test(source: Id) -> None:
    """Try a source: list its first items."""
    from builtin_plugins.sources.commands.calls import test_source
    from cli import console, running
    from cli.failures import CommandFailed

    tested = running.run(test_source(source))
    rows = [(one["path"], one["skipped"] or "") for one in tested["items"]]
    console.print_table(("path", "left out"), rows, "There is nothing.")
    if not tested["ok"]:
        raise CommandFailed(str(tested["problem"]))


@app.command(
    epilog=examples(
        ("platformctl sources run SOURCE", "and wait until it has ended"),
        ("platformctl sources run SOURCE --dry", "only list what would change"),
        ("platformctl sources run SOURCE --confirm", "much is missing there, and that is right"),
    )
)
def run(
    source: Id,
    dry: Annotated[bool, typer.Option("--dry", help="Change nothing.")] = False,
    confirm: Annotated[bool, typer.Option("--confirm", help="Delete what is missing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a source and wait until the run has ended. The exit code is 1 if it did not succeed."""
    from builtin_plugins.sources.commands.calls import run_source
    from cli import console, running
    from cli.failures import CommandFailed

    if dry and confirm:
        raise typer.BadParameter("choose one of --dry and --confirm", param_hint="--dry")
    ended = running.run(run_source(source, dry=dry, confirm=confirm))
    if as_json:
        console.print_json(ended)
    else:
        figures = ("found", "added", "changed", "moved", "gone", "skipped", "failed")
        console.print_facts([(name, str(ended[name])) for name in figures])
        for change, paths in (ended["plan"] or {}).items():
            for path in paths:
                console.note(f"{change}: {path}")
    if ended["state"] != "done":
        remedy = "Look at it, then: platformctl sources run SOURCE --confirm"
        raise CommandFailed(
            ended["error"] or ended["state"].replace("_", " "),
            remedy if ended["state"] == "needs_confirmation" else "",
        )


@app.command(epilog=examples(("platformctl sources why DOCUMENT --kb Handbook", "where it comes from")))
def why(
    document: Annotated[str, typer.Argument(help="The document's id.", metavar="DOCUMENT")],
    base: Annotated[str, typer.Option("--kb", help="Name or id of its knowledge base.")],
    as_json: AsJson = False,
) -> None:
    """Say why a document is there, and for who may change its knowledge base, who may read it and why."""
    from builtin_plugins.sources.commands.calls import origin_of_document
    from builtin_plugins.sources.commands.rights import readers_of_document
    from cli import console, running

    origin = running.run(origin_of_document(base, document))
    readers = running.run(readers_of_document(base, document))
    if as_json:
        console.print_json({**origin, "readers": readers})
        return
    console.print_facts([(name, str(value)) for name, value in origin.items() if value])
    if readers is None:
        return
    if readers["everybody"]:
        console.note("Everybody who sees the knowledge base may read it.")
    rows = [(one["name"], one["kind"], _accounts(one["account_ids"])) for one in readers["readers"]]
    if rows:
        console.print_table(("may read it there", "kind", "accounts here"), rows, "")


@app.command(epilog=examples(("platformctl sources rights SOURCE", "who there has no counterpart here?")))
def rights(source: Id, as_json: AsJson = False) -> None:
    """Show when the permissions at a source were read, and which people and groups have no counterpart."""
    from builtin_plugins.sources.commands.rights import rights_of
    from cli import console, running

    facts = running.run(rights_of(source))
    if as_json:
        console.print_json(facts)
        return
    console.print_facts([(name, str(value)) for name, value in facts.items() if name != "unmapped"])
    rows = [(one["principal"], one["kind"], one["name"]) for one in facts["unmapped"]]
    console.print_table(("no counterpart", "kind", "name"), rows, "Everybody there has a counterpart here.")


@app.command(
    name="map",
    epilog=examples(
        ("platformctl sources map SOURCE staff --group --to team:7", "a group is a team"),
        ("platformctl sources map SOURCE ann --to account:12", "a person is an account"),
        ("platformctl sources map SOURCE hr --group --to sign-in-group:hr", "one of the sign-in"),
        ("platformctl sources map SOURCE staff --group", "take that back"),
    ),
)
def map_to(
    source: Id,
    principal: Annotated[str, typer.Argument(help="The id there: 'platformctl sources rights'.")],
    group: Annotated[bool, typer.Option("--group", help="It is a group, not a person.")] = False,
    to: Annotated[
        str | None,
        typer.Option(
            help="everyone, nobody, account:ID, team:ID, or sign-in-group:NAME, a group that the identity "
            "provider names; omitted: as if not said."
        ),
    ] = None,
) -> None:
    """Say what a person or a group at a source is here."""
    from builtin_plugins.sources.commands.rights import map_principal
    from cli import console, running

    running.run(map_principal(source, "group" if group else "person", principal, to))
    console.done("It counts from now on")


@app.command(
    epilog=examples(
        ("platformctl sources new acme-drive", "creates the folder acme-drive here"),
        ("platformctl sources new acme-drive --into ~/src", "or elsewhere"),
        ("platformctl sources new acme-drive --guarded", "with permissions of its own"),
    )
)
def new(
    name: Annotated[str, typer.Argument(help="Name of the plugin, such as acme-drive.")],
    into: Annotated[
        Path | None,
        typer.Option(
            "--into", metavar="FOLDER", help="Folder to create it in; the current one when omitted."
        ),
    ] = None,
    guarded: Annotated[bool, typer.Option("--guarded", help="With permissions of its own.")] = False,
) -> None:
    """Create a plugin with a kind of source that passes the tests for all sources, to start from."""
    from cli import console
    from cli.scaffolding import write_plugin

    templates = Path(__file__).parents[1] / "templates"
    instead = templates.with_name("templates_guarded") if guarded else None
    written = write_plugin(name, into or Path.cwd(), templates, instead)
    folder = written[0].parent
    for path in written:
        console.note(str(path.relative_to(folder.parent)))
    console.done(f"{folder.name} contains the new plugin. Next: cd {folder.name} && python -m pytest")


def _pair(text: str) -> tuple[str, str]:
    """A setting as text: the server makes a number of it where its form asks for one."""
    name, equals, value = text.partition("=")
    if not equals:
        raise typer.BadParameter(f"'{text}' is not NAME=VALUE", param_hint="--set")
    return name.strip(), value


def _accounts(ids: list[int] | None) -> str:
    return "whoever is in its group of the sign-in" if ids is None else ", ".join(map(str, ids))


def _state(source: dict[str, Any]) -> str:
    last = source["last_run"]
    return "being removed" if source["is_leaving"] else last["state"].replace("_", " ") if last else "new"


def _next(source: dict[str, Any]) -> str:
    return (source["next_at"] or "by hand")[:16].replace("T", " ")
