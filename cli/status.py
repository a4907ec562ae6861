"""`platformctl status`: the running platform at a glance."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from cli.options import AsJson
from cli.texts import App, examples

app = App()


@app.command(
    epilog=examples(
        ("platformctl status", "services, queue, failures, disk, backups"),
        ("platformctl status --port 8222", "of a platform that was started with --port"),
        ("platformctl status --json", "for scripts"),
        after="The exit code is 1 if the platform doesn't answer or is unhealthy. 'platformctl doctor' looks "
        "deeper and suggests remedies.",
    )
)
def status(
    port: Annotated[
        int | None, typer.Option(help="Port of the API; PLATFORM_PORT if omitted.", min=1, max=65535)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show services, the queue with its age, the last failures, free disk space and the newest backup."""
    from cli import console, glance, running

    facts = running.run(glance.take(port))
    if as_json:
        console.print_json(facts)
    else:
        _show(facts)
    if facts["api"].get("status") != "healthy":
        raise typer.Exit(1)


def _show(status: dict[str, Any]) -> None:
    from cli import console

    facts = [
        ("platform", f"{status['version']} in {status['home']}"),
        ("api", _api(status)),
        ("services", _services(status["api"])),
    ]
    if "workers" in status:
        facts += [
            ("database", _database(status["database"])),
            (
                "workers",
                str(status["workers"]) if status["workers"] else "none; start one: platformctl worker",
            ),
            ("queue", _queue(status["queue"])),
            ("failed jobs", f"{status['failed_last_day']} in the last 24 hours"),
        ]
    facts += [("disk", _disk(status["disk"]))]
    facts += [(name, text if at is None else f"{text}, {_ago(at)}") for name, text, at in status["plugins"]]
    console.print_facts(facts)
    for problem in status["problems"]:
        console.warn(problem)
    for job in status.get("failures", []):
        console.note(f"{_ago(job['finished_at'])}: {job['kind']} {job['id']}: {job['error']}")


def _api(status: dict[str, Any]) -> str:
    api = status["api"]
    if not api["answers"]:
        return f"doesn't answer at {status['address']}; for another port, use --port or set PLATFORM_PORT"
    bad = "".join(f"\n{name}: {text}" for name, text in api["unhealthy"].items())
    return f"{api['status']} at {status['address']}{bad}"


def _services(api: dict[str, Any]) -> str:
    services = api.get("services", [])
    if not services:
        return "unknown"
    away = [str(one["name"]) for one in services if not one.get("reachable")]
    text = f"{len(services) - len(away)} of {len(services)} respond"
    return text + (f"; not: {', '.join(away)}" if away else "")


def _database(database: dict[str, Any]) -> str:
    if not database["pending"]:
        return f"{database['kind']}, up to date"
    return f"{database['kind']}, migrations are pending for {', '.join(database['pending'])}"


def _queue(queue: list[dict[str, Any]]) -> str:
    if not queue:
        return "empty"
    return "\n".join(
        f"{one['lane']}: {one['jobs']} {one['status']}, the oldest since {_span(one['oldest_seconds'])}"
        for one in queue
    )


def _disk(disk: dict[str, Any]) -> str:
    trouble = ": full, uploads are refused" if disk["is_short"] else ""
    if not disk["can_be_written"]:
        trouble = ", but it can't be written: nothing is saved"
    return f"{disk['free_bytes'] / 2**30:,.1f} GB free{trouble}"


def _ago(moment: datetime | None) -> str:
    if moment is None:
        return "at an unknown time"
    return f"{_span(int((datetime.now(UTC) - moment).total_seconds()))} ago"


def _span(seconds: int) -> str:
    for size, name in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            count = seconds // size
            return f"{count} {name}{'' if count == 1 else 's'}"
    return f"{max(seconds, 0)} s"
