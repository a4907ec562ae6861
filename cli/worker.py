"""`platformctl worker`: a process that runs jobs."""

from __future__ import annotations

import typer

from cli.texts import examples

app = typer.Typer(rich_markup_mode="rich")


@app.command(
    epilog=examples(
        ("platformctl worker", "a further worker beside 'serve'"),
        ("PLATFORM_WORKER_CONCURRENCY=4 platformctl worker", "four jobs at a time"),
        after="On another machine, give it the same DATABASE_URL, and PLATFORM_HOME on a shared file system.",
    )
)
def worker() -> None:
    """Run jobs until stopped, at lower priority than the API. 'platformctl serve' starts one by itself."""
    from cli.processes import configure_logs, run_process
    from cli.running import make_loader
    from kernel.serve import run_worker

    loader = make_loader()
    configure_logs(loader)
    run_process(run_worker(loader))
