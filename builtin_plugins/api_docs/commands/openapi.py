"""`platformctl openapi`: the API's description."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.texts import App, examples

app = App()


@app.command(
    epilog=examples(
        ("platformctl openapi > openapi.json", "with the plugins installed here"),
        ("platformctl openapi --service rag-pipeline", "one service, at its own root"),
        ("platformctl openapi --snapshot -o schemas/openapi.json", "the published snapshot"),
    )
)
def openapi(
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
    service: Annotated[
        str | None, typer.Option(metavar="NAME", help="Describe this service instead of the gateway.")
    ] = None,
    snapshot: Annotated[bool, typer.Option("--snapshot", help="Leave out free-text descriptions.")] = False,
) -> None:
    """Print the OpenAPI 3.1 document of the API, with the installed plugins."""
    from cli import console, running

    from ..openapi import without_descriptions

    document = running.run(_document(service))
    text = json.dumps(without_descriptions(document) if snapshot else document, indent=2, ensure_ascii=False)
    if output is None:
        sys.stdout.write(text + "\n")
        return
    output.write_text(text + "\n", encoding="utf-8")
    console.done(f"{output}: {len(document['paths'])} paths")


async def _document(service: str | None) -> dict[str, Any]:
    from cli import running

    from ..openapi import build_document

    async with running.explained_platform() as platform:
        endpoints, title = running.endpoints_of(platform, service)
        return build_document(endpoints, title)
