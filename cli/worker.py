"""`platformctl worker`: a process that runs jobs."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.texts import App, examples

app = App()


@app.command(
    epilog=examples(
        ("platformctl worker", "one more worker, besides the one that 'serve' starts"),
        ("PLATFORM_WORKER_CONCURRENCY=4 platformctl worker", "four jobs at the same time"),
        after="On another machine, it needs the same settings and secrets: "
        "docs/how-to/more-than-one-machine.md.",
    )
)
def worker(supervised: Annotated[bool, typer.Option("--supervised", hidden=True)] = False) -> None:
    """Run jobs until stopped, at lower priority than the API. 'platformctl serve' starts a worker itself."""
    from kernel.libs import memory

    memory.limit_arenas()
    memory.collect_seldom()
    from cli.processes import configure_logs, run_process
    from cli.running import make_loader
    from kernel.process.serve import run_worker

    loader = make_loader()
    configure_logs(loader)
    run_process(run_worker(loader, supervised=supervised))
