"""`platformctl search`: the passages of a knowledge base that fit a question, without an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from builtin_plugins.rag.commands.filter_option import (
    AnyTime,
    AsOf,
    Filters,
    add_times,
    filter_of,
    period_line,
)
from cli.options import AsJson
from cli.texts import App, examples

app = App()


@app.command(
    epilog=examples(
        ('platformctl search "hotel Oslo" --kb Handbook', "the best passages"),
        ('platformctl search "notice period" --kb Legal --filter year=2026', "of some documents"),
        after="Sign in first, with 'platformctl login URL'.",
    )
)
def search(
    question: Annotated[str, typer.Argument(help="What to look for.")],
    base: Annotated[str, typer.Option("--kb", help="Name or id of the knowledge base.")],
    top: Annotated[int, typer.Option(min=1, max=100, help="How many passages.")] = 5,
    filters: Filters = None,
    any_time: AnyTime = False,
    as_of: AsOf = None,
    as_json: AsJson = False,
) -> None:
    """Find passages; no model is asked."""
    from cli import running

    if not question.strip():
        raise typer.BadParameter("the question is empty", param_hint="QUESTION")
    body: dict[str, Any] = {"question": question, "top_k": top}
    metadata_filter = filter_of(filters)
    if metadata_filter is not None:
        body["metadata_filter"] = metadata_filter
    add_times(body, as_of, any_time=any_time)
    running.run(_search(body, base, as_json=as_json))


async def _search(body: Mapping[str, Any], base: str, *, as_json: bool) -> None:
    from builtin_plugins.rag.commands.upload_run import find_base
    from cli import console
    from cli.client import signed_in

    async with signed_in() as client:
        path = f"/v1/rag/knowledge-bases/{await find_base(client, base)}/search"
        answer = await client.call("POST", path, json=body)
    if as_json:
        console.print_json(answer)
        return
    if period := period_line(answer.get("period")):
        console.note(period)
    for item in answer["items"]:
        page = f", page {item['page']}" if item.get("page") else ""
        console.note(f"{item['source']}{page} ({item['score']:.2f})")
        typer.echo(f"{item['text'].strip()}\n")
