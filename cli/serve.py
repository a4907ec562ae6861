"""`platformctl serve`: an API process that supervises a worker, or several API processes on one port."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.texts import App, examples

app = App()


@app.command(
    epilog=examples(
        ("platformctl serve", "on 127.0.0.1, port 8000"),
        ("platformctl serve --workers 4", "four API processes on one port"),
        ("platformctl serve --only rag-pipeline --port 8004", "only one service"),
        ("PLATFORM_LOG_FILE=/var/log/platform.log platformctl serve", "log to a file, as JSON lines"),
        after="'platformctl settings' shows all settings. Ctrl-C or SIGTERM stops the platform "
        "after running requests have finished.",
    )
)
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on (default: 127.0.0.1).")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port, 0 for a free one (default: 8000).")
    ] = None,
    only: Annotated[
        str | None, typer.Option(metavar="SERVICE", help="Serve only this service, at its own root.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, max=64, help="API processes that share the port (default: 1).")
    ] = None,
    no_worker: Annotated[
        bool, typer.Option("--no-worker", help="Don't start a worker; run 'platformctl worker' separately.")
    ] = False,
    log_file: Annotated[
        Path | None, typer.Option(help="Append log lines to this file instead of standard error.")
    ] = None,
    shared_port: Annotated[bool, typer.Option("--shared-port", hidden=True)] = False,
) -> None:
    """Start the platform: the API, and a worker process that ingests documents.

        The first start creates PLATFORM_HOME with its secrets and updates the database. Everything is
    stored in that folder.
    """
    from kernel.libs import memory

    memory.limit_arenas()
    memory.collect_seldom()
    from cli.processes import Start, start

    chosen = {
        "PLATFORM_HOST": host,
        "PLATFORM_PORT": port,
        "PLATFORM_WORKERS": workers,
        "PLATFORM_LOG_FILE": log_file,
    }
    overrides = {name: str(value) for name, value in chosen.items() if value is not None}
    start(overrides, Start(only=only, with_worker=not no_worker, shared_port=shared_port))
