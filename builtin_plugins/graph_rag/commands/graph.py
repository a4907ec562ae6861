"""`platformctl graph`: pictures of documents' graphs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.texts import App, examples

if TYPE_CHECKING:
    from builtin_plugins.graph_rag.drawing.svg import Picture

_TEXTS = (".md", ".txt")

app = App(
    no_args_is_help=True,
    help="Knowledge graphs of documents.",
    epilog=examples(
        ("platformctl graph draw", "the graph of the sample documents"),
        ("platformctl graph draw notes/ -o notes.svg", "of your own texts, without a server"),
    ),
)


@app.callback()
def _graph() -> None:
    """Keeps `draw` a command of the group."""


@app.command(
    epilog=examples(
        ("platformctl graph draw", "the sample documents, to graph.svg"),
        ("platformctl graph draw a.md b.txt -o -", "to standard output"),
        ("platformctl graph draw --knowledge-base ID", "the stored graph of a knowledge base"),
    )
)
def draw(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Texts (.md, .txt) or folders; the samples if none.")
    ] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="File to write; - prints it.")] = Path(
        "graph.svg"
    ),
    knowledge_base: Annotated[
        str | None, typer.Option(help="Draw the stored graph of this knowledge base instead.")
    ] = None,
    entities: Annotated[int, typer.Option(min=2, max=500, help="Most entities to show.")] = 60,
) -> None:
    """Draw a graph as SVG: entities, their relations, and communities by color."""
    from cli import console

    picture = (
        _of_texts(paths or [_samples()], entities)
        if knowledge_base is None
        else _of_base(knowledge_base, entities)
    )
    if str(output) == "-":
        typer.echo(picture.svg, nl=False)
        return
    output.write_text(picture.svg, encoding="utf-8")
    console.done(f"{output}: {picture.entities} entities, {picture.relations} relations")


def _samples() -> Path:
    from builtin_plugins.demo.api import SAMPLES

    return SAMPLES


def _of_texts(paths: Sequence[Path], entities: int) -> Picture:
    from builtin_plugins.graph_rag.drawing.texts import draw_texts
    from cli.failures import CommandFailed

    files = [file for path in paths for file in ([path] if path.is_file() else sorted(path.glob("*")))]
    texts = {
        str(file): file.read_text(encoding="utf-8", errors="replace")
        for file in files
        if file.suffix in _TEXTS and file.name != "README.md"
    }
    if not texts:
        raise CommandFailed("no text was found", "Name files that end in .md or .txt, or their folder.")
    title = ", ".join(Path(name).name for name in texts)
    return draw_texts(texts, most=entities, title=title if len(title) <= 120 else f"{len(texts)} documents")


def _of_base(knowledge_base: str, entities: int) -> Picture:
    from cli import running
    from cli.failures import Missing

    picture = running.run(_stored(knowledge_base, entities))
    if picture is None:
        raise Missing(
            f"the knowledge base '{knowledge_base}' has no graph, or does not exist",
            'GET /v1/rag/knowledge-bases lists the ids; PATCH with {"graph": true} builds a graph.',
        )
    return picture


async def _stored(knowledge_base: str, entities: int) -> Picture | None:
    from builtin_plugins.graph_rag.drawing.stored import draw_base
    from cli import running

    async with running.stored_platform() as platform:
        title = f"Knowledge base {knowledge_base}"
        return await platform.database.read(draw_base, knowledge_base, most=entities, title=title)
