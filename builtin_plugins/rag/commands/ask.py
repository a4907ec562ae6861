"""`platformctl ask`: a question to a knowledge base or a pipeline, with the answer as it is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

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

if TYPE_CHECKING:
    from cli.client import Client

app = App()


@app.command(
    epilog=examples(
        ('platformctl ask "What may a hotel cost?" --kb Handbook', "one knowledge base"),
        ('platformctl ask "Who signs?" --pipeline Legal', "a pipeline, with its settings"),
        ('platformctl ask "Who signs?" --kb Legal --filter year=2026', "about some of the documents"),
        ('platformctl ask "Who signs?" --kb Legal --as-of 2026-03-01', "as it was then"),
        ('platformctl ask "Who signs?" --kb Legal --json', "for a script: the whole answer at once"),
        after="Sign in first, with 'platformctl login URL'.",
    )
)
def ask(
    question: Annotated[str, typer.Argument(help="The question.")],
    base: Annotated[str | None, typer.Option("--kb", help="Name or id of the knowledge base.")] = None,
    pipeline: Annotated[str | None, typer.Option(help="Name or id of a pipeline.")] = None,
    filters: Filters = None,
    any_time: AnyTime = False,
    as_of: AsOf = None,
    as_json: AsJson = False,
) -> None:
    """Ask a question; the answer appears as it is written, followed by the sources that it cites."""
    from cli import running

    if not question.strip():
        raise typer.BadParameter("the question is empty", param_hint="QUESTION")
    if base is not None and pipeline is not None:
        raise typer.BadParameter("choose one of --kb and --pipeline", param_hint="--pipeline")
    body: dict[str, Any] = {"question": question}
    metadata_filter = filter_of(filters)
    if metadata_filter is not None:
        body["metadata_filter"] = metadata_filter
    add_times(body, as_of, any_time=any_time)
    running.run((_ask_at_once if as_json else _ask)(body, base, pipeline))


async def _ask_at_once(body: dict[str, Any], base: str | None, pipeline: str | None) -> None:
    from cli import console
    from cli.client import signed_in

    async with signed_in() as client:
        path = f"/v1/rag/pipeline/{await _pipeline(client, base, pipeline)}/query"
        console.print_json(await client.call("POST", path, json=body))


async def _ask(body: dict[str, Any], base: str | None, pipeline: str | None) -> None:
    from cli import console
    from cli.client import signed_in
    from cli.failures import CommandFailed

    sources: list[dict[str, Any]] = []
    answer, period = "", None
    async with signed_in() as client:
        chosen = await _pipeline(client, base, pipeline)
        async with client.stream(f"/v1/rag/pipeline/{chosen}/query", body) as events:
            async for name, value in events:
                if name == "sources":
                    sources = value["sources"]
                elif name == "token":
                    answer += value["text"]
                    typer.echo(value["text"], nl=False)
                elif name == "done":
                    sources = value.get("sources", sources)
                    period = period_line(value.get("method_details", {}).get("period"))
                elif name == "error":
                    typer.echo()
                    raise CommandFailed(str(value.get("detail", value)))
    typer.echo()
    if period:
        console.note(period)
    for line in _cited(answer, sources):
        console.note(line)


def _cited(answer: str, sources: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The sources that the answer cites; identical lines are merged."""
    numbers: dict[str, str] = {}
    for number, source in enumerate(sources, start=1):
        if f"[{number}]" in answer:
            section = f", {source['section']}" if source.get("section") else ""
            place = f"{source['source']}{section}{_pages(source)}"
            numbers[place] = f"{numbers.get(place, '')}[{number}]"
    return (f"{cited} {place}" for place, cited in numbers.items())


def _pages(source: dict[str, Any]) -> str:
    if not source.get("page"):
        return ""
    return f", page {source['page']}" + (f" to {source['last_page']}" if source.get("last_page") else "")


async def _pipeline(client: Client, base: str | None, pipeline: str | None) -> str:
    """The pipeline to ask: the given one, or one over just this knowledge base."""
    from builtin_plugins.rag.commands.upload_run import find_base, pages
    from cli.failures import CommandFailed, ExitCode, Missing

    pipelines = [one async for one in pages(client, "/v1/rag/pipeline")]
    if pipeline is not None:
        matches = [one for one in pipelines if pipeline in (one["id"], one["name"])]
        if len(matches) != 1:
            names = ", ".join(sorted(one["name"] for one in pipelines)) or "none"
            raise Missing(f"{len(matches) or 'no'} pipelines are called '{pipeline}'", f"Available: {names}.")
        return str(matches[0]["id"])
    if base is None:
        if len(pipelines) == 1:
            return str(pipelines[0]["id"])
        raise CommandFailed(
            "which knowledge base?", "Name one with --kb, or a pipeline with --pipeline.", code=ExitCode.USAGE
        )
    base_id = await find_base(client, base)
    same = [one for one in pipelines if one["knowledge_base_ids"] == [base_id]]
    if same:
        return str(same[0]["id"])
    body = {"name": base, "knowledge_base_ids": [base_id]}
    answer = await client.call("POST", "/v1/rag/pipeline", json=body)
    return str(answer["pipeline_id"])
