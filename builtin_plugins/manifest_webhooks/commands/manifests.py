"""`platformctl manifests`: webhook manifests, checked before they are dropped in, listed, and followed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cli.options import AsJson
from cli.texts import App, examples

if TYPE_CHECKING:
    from builtin_plugins.manifest_webhooks.catalog import Claim, Holders
    from builtin_plugins.manifest_webhooks.manifest import Manifest
    from builtin_plugins.manifest_webhooks.problems import Problem
    from kernel.sdk import Platform

Outcome = Literal["stored", "repeated", "skipped", "refused"]

app = App(
    no_args_is_help=True,
    help="A manifest turns a webhook into searchable text without code. Manifests are in "
    "PLATFORM_MANIFESTS_DIR.",
    epilog=examples(
        ("platformctl manifests validate my.yaml", "each problem, and how to fix it"),
        ("platformctl manifests list", "which are live, and why others are not"),
        ("platformctl manifests deliveries NAME", "what happened to each delivery"),
    ),
)


@app.command(
    epilog=examples(
        ("platformctl manifests validate manifests/", "all files of a folder"),
        ("platformctl manifests validate a.yaml b.json --json", "as JSON"),
    )
)
def validate(
    paths: Annotated[list[Path], typer.Argument(help="Files or folders.")], as_json: AsJson = False
) -> None:
    """Check manifests without installing them. The exit code is 1 if one is not valid.

    A manifest that is valid but probably not what you mean, such as one with a misspelt key, is marked '!',
    and has a "warning" among its problems in JSON.
    """
    from cli import console
    from cli.failures import CommandFailed

    checked = dict(_check_all(_files(paths)))
    if not checked:
        raise CommandFailed("no manifest was found", "Manifest files end in .yaml, .yml or .json.")
    if as_json:
        console.print_json({path: _for_programs(*report) for path, report in checked.items()})
    else:
        _print_checked(checked)
    if any(problems for problems, _ in checked.values()):
        raise typer.Exit(1)


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    from builtin_plugins.manifest_webhooks.folder_watch import is_manifest_name

    for path in paths:
        if path.is_dir():
            yield from sorted(file for file in path.iterdir() if is_manifest_name(file.name))
        else:
            yield path


def _check_all(files: Iterable[Path]) -> Iterator[tuple[str, tuple[list[Problem], list[Problem]]]]:
    """Per file: its errors (none if it is valid), then its warnings."""
    first: dict[tuple[Path, Claim], str] = {}
    for path in files:
        manifest, problems, odd = _checked(path)
        yield str(path), ([*problems, *_duplicate_claims(path, manifest, first)], odd)


def _duplicate_claims(
    path: Path, manifest: Manifest | None, first: dict[tuple[Path, Claim], str]
) -> Iterator[Problem]:
    """Claims that another file in the same folder already has; `first` maps claims to their first file."""
    from builtin_plugins.manifest_webhooks.catalog import claims_of
    from builtin_plugins.manifest_webhooks.problems import Problem

    where = {"name": "metadata -> name", "path": "spec -> trigger -> webhook -> path"}
    for claim in claims_of(manifest) if manifest else ():
        kind, value = claim
        holder = first.setdefault((path.parent, claim), path.name)
        if holder != path.name:
            message = f"'{value}' is also declared in {holder}"
            yield Problem(where[kind], message, f"Choose another {kind}; only one of the two files is live.")


def _checked(path: Path) -> tuple[Manifest | None, list[Problem], list[Problem]]:
    from builtin_plugins.manifest_webhooks.folder import ManifestFolder
    from builtin_plugins.manifest_webhooks.folder_watch import is_manifest_name
    from builtin_plugins.manifest_webhooks.loading import load_manifest, read_manifest
    from builtin_plugins.manifest_webhooks.problems import ManifestError
    from builtin_plugins.manifest_webhooks.tree import MAX_MANIFEST_BYTES
    from builtin_plugins.manifest_webhooks.validation import check_manifest, oddities

    validator = ManifestFolder(path.parent, frozenset).validator
    try:
        if path.is_symlink() and is_manifest_name(path.name):
            tree = read_manifest(path, within=path.parent)
        else:
            with path.open("rb") as file:
                tree = load_manifest(file.read(MAX_MANIFEST_BYTES + 1), path.name)
        manifest = check_manifest(tree, validator, path.name)
    except ManifestError as error:
        return None, error.problems, []
    unwatched = [] if is_manifest_name(path.name) else [_not_watched(path.name)]
    return manifest, [], [*unwatched, *oddities(tree, manifest, validator)]


def _not_watched(name: str) -> Problem:
    from builtin_plugins.manifest_webhooks.problems import ROOT, Problem

    message = f"The manifests' folder is only searched for .yaml, .yml and .json files, not for '{name}'"
    return Problem(ROOT, message, "Name it such as my.yaml, without a dot in front.")


def _for_programs(problems: list[Problem], odd: list[Problem]) -> list[dict[str, Any]]:
    errors = [{"severity": "error", **problem.as_dict()} for problem in problems]
    return errors + [{"severity": "warning", **problem.as_dict()} for problem in odd]


def _print_checked(checked: dict[str, tuple[list[Problem], list[Problem]]]) -> None:
    from rich.text import Text

    from cli import console

    out = console.out()
    for path, (problems, odd) in checked.items():
        sound = Text("! ", "yellow") if odd else Text("✓ ", "green")
        out.print((Text("✗ ", "bold red") if problems else sound) + Text(path, ""))
        for problem in [*problems, *odd]:
            where = f" (line {problem.line})" if problem.line else ""
            out.print(Text(f"    {problem.path}{where}: {problem.message}"))
            out.print(Text(f"      {problem.remedy}", "dim"))


@app.command(name="list", epilog=examples(("platformctl manifests list --json", "as JSON")))
def show(as_json: AsJson = False) -> None:
    """List the manifests in PLATFORM_MANIFESTS_DIR, and why some are not live."""
    from cli import console, running

    directory, items = running.run(listed())
    if as_json:
        console.print_json(items)
        return
    rows = [
        (
            item["name"],
            console.styled_status(item["status"]),
            item["webhook"],
            item["collection"],
            item["reason"],
        )
        for item in items
    ]
    columns = ("name", "status", "webhook", "collection", "about")
    console.print_table(columns, rows, f"There is no manifest in {directory.absolute()}.")


async def listed() -> tuple[Path, list[dict[str, Any]]]:
    """The manifests' folder, and the state of each manifest."""
    from builtin_plugins.manifest_webhooks.listing import list_manifests
    from builtin_plugins.manifest_webhooks.settings import WebhookSettings
    from cli import running
    from cli.plugin_facts import disabled_plugins, require

    async with running.explained_platform() as platform:
        require(platform, "manifest_webhooks")
        folder = platform.settings_of(WebhookSettings).manifests_dir
        states = await list_manifests(platform, await disabled_plugins(platform), await _claims(platform))
        return folder, [asdict(state) for state in states]


async def _claims(platform: Platform) -> Holders:
    """Who holds which name and path, as the serving processes know it; empty if that is unknown."""
    from sqlalchemy.exc import SQLAlchemyError

    from builtin_plugins.manifest_webhooks.claims import read_claims
    from cli import running
    from cli.plugin_facts import has_database

    if not has_database(platform):
        return {}
    with running.private_files(), suppress(SQLAlchemyError, OSError):
        return await platform.database.read(read_claims)
    return {}


@app.command(
    epilog=examples(
        ("platformctl manifests deliveries github-issues", "the last 20"),
        ("platformctl manifests deliveries github-issues --outcome refused", "those that failed, and why"),
        ("platformctl manifests deliveries github-issues --limit 200 --json", "the latest deliveries"),
    )
)
def deliveries(
    name: Annotated[str, typer.Argument(help="The manifest's metadata.name.")],
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many to show.")] = 20,
    outcome: Annotated[
        Outcome | None,
        typer.Option(metavar="OUTCOME", help="Only those stored, repeated, skipped or refused."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the last deliveries to a manifest, newest first: stored, repeated, skipped or refused, and why.

    For each manifest, the last 100 with a valid signature and the last 100 without one are kept.
    """
    from cli import console, running

    records = running.run(_deliveries(name, limit, outcome))
    if not records:
        _insist_on(name)
    if as_json:
        console.print_json(records)
        return
    columns = ("received", "event", "delivery", "signed", "outcome", "status", "reason")
    rows = [
        (
            item["received_at"][:19].replace("T", " "),
            item["event"] or "",
            item["delivery_id"] or "",
            "yes" if item["proven"] else "no",
            item["outcome"],
            item["status"],
            item["reason"] or "",
        )
        for item in records
    ]
    which = "deliveries" if outcome is None else f"{outcome} deliveries"
    console.print_table(columns, rows, f"There are no {which} for '{name}' yet.")


def _insist_on(name: str) -> None:
    """Raise Missing if no manifest has that name."""
    from cli import running
    from cli.failures import Missing

    _, manifests = running.run(listed())
    names = [item["name"] for item in manifests if item["status"] != "refused"]
    if name not in names:
        remedy = f"Available: {', '.join(names)}." if names else "There are none."
        raise Missing(f"no manifest is called '{name}'", remedy)


async def _deliveries(name: str, limit: int, outcome: Outcome | None) -> list[dict[str, Any]]:
    from builtin_plugins.manifest_webhooks.deliveries import last
    from cli import running

    async with running.stored_platform() as platform:
        rows = await platform.database.read(last, name, limit, outcome)
        return [
            {
                "received_at": row.received_at.isoformat(),
                "event": row.event,
                "delivery_id": row.event_id,
                "proven": row.proven,
                "outcome": row.outcome,
                "status": row.status,
                "reason": row.reason,
                "point_id": row.point_id,
            }
            for row in rows
        ]
