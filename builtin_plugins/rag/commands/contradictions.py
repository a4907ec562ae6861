"""`platformctl rag contradictions`: what documents say differently about the same thing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.options import AsJson

if TYPE_CHECKING:
    from cli.client import Client

_PAGE = 500
_PAUSE = 0.5
_ENDED = ("done", "failed", "cancelled")


def contradictions(
    base: Annotated[str, typer.Option("--kb", help="Name or id of the knowledge base.")],
    compare: Annotated[
        bool, typer.Option("--compare", help="Compare the documents first, and wait.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show sentences that differ only in a number, a date or a "not", of documents about the same thing.

    No model is asked. Sign in first, with 'platformctl login URL'.
    """
    from cli import console, running

    found = running.run(_load_report(base, compare=compare))
    if as_json:
        console.print_json(found)
        return
    if found["made_at"] is None:
        console.note("the documents were not compared yet; --compare does it")
        return
    for item in found["items"]:
        for side in ("older", "newer"):
            one = item[side]
            page = f", page {one['page']}" if one["page"] else ""
            date = one["valid_from"] or one["uploaded_at"][:10]
            typer.echo(f"{one['filename']}{page}, {date}: {' '.join(one['text'].split())}")
        typer.echo("")
    count = found["total"]
    console.note(f"{count:,} {'contradiction' if count == 1 else 'contradictions'}")


async def _load_report(base: str, *, compare: bool) -> dict[str, Any]:
    from builtin_plugins.rag.commands.upload_run import find_base
    from cli.client import signed_in

    async with signed_in() as client:
        path = f"/v1/rag/knowledge-bases/{await find_base(client, base)}/contradictions"
        if compare:
            await _compare(client, path)
        found: dict[str, Any] = await client.get(path, limit=_PAGE, offset=0)
        while offset := len(found["items"]):
            page = await client.get(path, limit=_PAGE, offset=offset)
            if not page["items"]:
                break
            found["items"] += page["items"]
        return found


async def _compare(client: Client, path: str) -> None:
    import asyncio

    from cli.failures import CommandFailed

    job = str((await client.call("POST", path))["id"])
    while (state := await client.get(f"/v1/jobs/{job}"))["status"] not in _ENDED:  # noqa: ASYNC110 - a server
        await asyncio.sleep(_PAUSE)
    if state["status"] != "done":
        reason = "was cancelled" if state["status"] == "cancelled" else f"failed: {state.get('error')}"
        raise CommandFailed(f"the comparison {reason}", f"'platformctl jobs show {job}' says more.")
