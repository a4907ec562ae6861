"""`platformctl demo`: the main job in a throw-away instance, on embedded defaults and without a network."""

from __future__ import annotations

import typer

from cli.texts import examples

app = typer.Typer(rich_markup_mode="rich")


@app.command(
    epilog=examples(
        ("platformctl demo", "about half a minute; exit code 1 when a step failed"),
        after="It needs no network and no model server, and removes all that it has written.",
    )
)
def demo() -> None:
    """See the main job done: ingest documents, collect a webhook, ask questions, get cited answers.

    Starts a throw-away instance on a free port, uploads the sample documents, drops in a manifest, sends it a
    signed webhook, asks questions and prints the answers with their sources.
    """
    import uvloop

    from cli.demonstration import demonstrate

    uvloop.run(demonstrate())
