"""`platformctl rag diff`: where two versions of a document differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.options import AsJson

if TYPE_CHECKING:
    from cli.client import Client

_PAGE = 500


def diff(
    document: Annotated[str, typer.Argument(help="The document's path, or the id of one of its versions.")],
    base: Annotated[str, typer.Option("--kb", help="Name or id of the knowledge base.")],
    earlier: Annotated[
        int | None, typer.Option("--from", min=1, help="The earlier version; else the one before.")
    ] = None,
    later: Annotated[int | None, typer.Option("--to", min=1, help="The later version.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show where two versions of a document differ, sentence by sentence.

    Sign in first, with 'platformctl login URL'.
    """
    from cli import console, running

    found = running.run(_compare(document, base, earlier, later))
    if as_json:
        console.print_json(found)
        return
    old, new = found["earlier"], found["later"]
    console.note(f"version {old['version']} of {old['filename']} and version {new['version']}")
    for version in (old, new):
        console.note(f"version {version['version']}: {_origin(version)}")
    for change in found["items"]:
        _print(change)
    if not found["items"]:
        console.note("no sentence differs")


def _origin(version: Mapping[str, Any]) -> str:
    """When a version was uploaded, and by whom."""
    person = version["uploaded_by"]
    by = person["username"] if person else version["kept_by"]
    uploaded = f"uploaded {version['uploaded_at'][:16].replace('T', ' ')} UTC"
    return f"{uploaded} by {by}" if by else uploaded


def _print(change: Mapping[str, Any]) -> None:
    part = change["later"] or change["earlier"]
    page = f", page {part['page']}" if part["page"] else ""
    typer.echo(f"@ passage {part['chunk_index'] + 1}{page}")
    for sign, side in (("-", change["earlier"]), ("+", change["later"])):
        for line in side["text"].splitlines() if side else ():
            typer.echo(f"{sign} {line}")


async def _compare(wanted: str, base: str, earlier: int | None, later: int | None) -> dict[str, Any]:
    from builtin_plugins.rag.commands.upload_run import find_base
    from cli.client import signed_in

    async with signed_in() as client:
        place = f"/v1/rag/knowledge-bases/{await find_base(client, base)}/documents"
        document = await _document(client, place, wanted)
        query: dict[str, Any] = {}
        if later is not None:
            document = await _version(client, place, document, later)
        if earlier is not None:
            query["against"] = await _version(client, place, document, earlier)
        return await _all_changes(client, f"{place}/{document}/difference", query)


async def _all_changes(client: Client, path: str, query: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = await client.get(path, limit=_PAGE, offset=0, **query)
    while len(found["items"]) < found["total"]:
        page = await client.get(path, limit=_PAGE, offset=len(found["items"]), **query)
        if not page["items"]:
            break
        found["items"] += page["items"]
    return found


async def _document(client: Client, place: str, wanted: str) -> str:
    from urllib.parse import quote
    from uuid import UUID

    try:
        return str(UUID(wanted))
    except ValueError:
        found = await client.get(f"{place}/by-path/{quote(wanted)}")
        return str(found["document_id"])


async def _version(client: Client, place: str, document: str, number: int) -> str:
    from builtin_plugins.rag.commands.upload_run import pages
    from cli.failures import Missing

    known = {one["version"]: one async for one in pages(client, f"{place}/{document}/versions")}
    if number not in known:
        kept = ", ".join(str(one) for one in sorted(known))
        raise Missing(f"the document has no version {number}", f"Available: {kept}.")
    return str(known[number]["document_id"])
