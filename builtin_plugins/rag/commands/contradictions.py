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
    model_calls: Annotated[
        int,
        typer.Option(
            help="With --compare: how many pairs in other words the connected model may judge.",
            min=0,
            max=2_000,
        ),
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Show sentences that differ only in a number, a date or a "not", of documents about the same thing.

    No model is asked unless you say how often. Sign in first, with 'platformctl login URL'.
    """
    from cli import console, running

    if model_calls and not compare:
        raise typer.BadParameter("it needs --compare", param_hint="'--model-calls'")
    report = running.run(_load_report(base, model_calls if compare else None))
    if as_json:
        console.print_json(report)
        return
    if report["made_at"] is None:
        console.note("the documents were not compared yet; --compare does it")
        return
    for item in report["items"]:
        for side in ("older", "newer"):
            sentence = item[side]
            page = f", page {sentence['page']}" if sentence["page"] else ""
            date = sentence["valid_from"] or sentence["uploaded_at"][:10]
            typer.echo(f"{sentence['filename']}{page}, {date}: {' '.join(sentence['text'].split())}")
        typer.echo("(found by a model)\n" if item["found_by"] == "model" else "")
    count = report["total"]
    console.note(f"{count:,} {'contradiction' if count == 1 else 'contradictions'}")


async def _load_report(base: str, model_calls: int | None) -> dict[str, Any]:
    """The whole report, after another comparison unless `model_calls` is None."""
    from builtin_plugins.rag.commands.upload_run import find_base
    from cli.client import signed_in

    async with signed_in() as client:
        path = f"/v1/rag/knowledge-bases/{await find_base(client, base)}/contradictions"
        if model_calls is not None:
            await _compare(client, path, model_calls)
        report: dict[str, Any] = await client.get(path, limit=_PAGE, offset=0)
        while offset := len(report["items"]):
            page = await client.get(path, limit=_PAGE, offset=offset)
            if not page["items"]:
                break
            report["items"] += page["items"]
        return report


async def _compare(client: Client, path: str, model_calls: int) -> None:
    import asyncio

    from cli.failures import CommandFailed

    job = str((await client.call("POST", path, json={"model_calls": model_calls}))["id"])
    while (state := await client.get(f"/v1/jobs/{job}"))["status"] not in _ENDED:  # noqa: ASYNC110 - a server
        await asyncio.sleep(_PAUSE)
    if state["status"] != "done":
        reason = "was cancelled" if state["status"] == "cancelled" else f"failed: {state.get('error')}"
        raise CommandFailed(f"the comparison {reason}", f"'platformctl jobs show {job}' says more.")
