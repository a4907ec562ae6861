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

    difference = running.run(_compare(document, base, earlier, later))
    if as_json:
        console.print_json(difference)
        return
    old, new = difference["earlier"], difference["later"]
    console.note(f"version {old['version']} of {old['filename']} and version {new['version']}")
    for version in (old, new):
        console.note(f"version {version['version']}: {_origin(version)}")
    for change in difference["items"]:
        _print(change)
    if not difference["items"]:
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


async def _compare(path_or_id: str, base: str, earlier: int | None, later: int | None) -> dict[str, Any]:
    from builtin_plugins.rag.commands.upload_run import find_base
    from cli.client import signed_in

    async with signed_in() as client:
        place = f"/v1/rag/knowledge-bases/{await find_base(client, base)}/documents"
        document = await _document(client, place, path_or_id)
        query: dict[str, Any] = {}
        if later is not None:
            document = await _version(client, place, document, later)
        if earlier is not None:
            query["against"] = await _version(client, place, document, earlier)
        return await _all_changes(client, f"{place}/{document}/difference", query)


async def _all_changes(client: Client, path: str, query: Mapping[str, Any]) -> dict[str, Any]:
    difference: dict[str, Any] = await client.get(path, limit=_PAGE, offset=0, **query)
    while len(difference["items"]) < difference["total"]:
        page = await client.get(path, limit=_PAGE, offset=len(difference["items"]), **query)
        if not page["items"]:
            break
        difference["items"] += page["items"]
    return difference


async def _document(client: Client, place: str, path_or_id: str) -> str:
    from urllib.parse import quote
    from uuid import UUID

    try:
        return str(UUID(path_or_id))
    except ValueError:
        version = await client.get(f"{place}/by-path/{quote(path_or_id)}")
        return str(version["document_id"])


async def _version(client: Client, place: str, document: str, number: int) -> str:
    from builtin_plugins.rag.commands.upload_run import pages
    from cli.failures import Missing

    versions = {one["version"]: one async for one in pages(client, f"{place}/{document}/versions")}
    if number not in versions:
        numbers = ", ".join(str(one) for one in sorted(versions))
        raise Missing(f"the document has no version {number}", f"Available: {numbers}.")
    return str(versions[number]["document_id"])
