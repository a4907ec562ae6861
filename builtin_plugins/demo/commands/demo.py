"""`platformctl demo`: the main job in a throw-away instance, with embedded defaults and no network."""

from __future__ import annotations

from cli.texts import App, examples

app = App()


@app.command(
    epilog=examples(
        ("platformctl demo", "takes about half a minute; exit code 1 if a step fails"),
        after="Needs no network and no model server, and removes everything it has created.",
    )
)
def demo() -> None:
    """Try it out: ingest documents, collect a webhook, ask questions, get cited answers.

    Starts a throw-away instance on a free port, uploads the sample documents, drops in a manifest, sends it a
    signed webhook, asks questions and prints the answers with their sources.
    """
    import asyncio

    from builtin_plugins.demo.commands.walk import demonstrate

    asyncio.run(demonstrate())
