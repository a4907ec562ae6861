"""`platformctl jobs`: shows and cancels background work directly in the database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.options import AsJson
from cli.texts import App, examples

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from kernel.db.engine import Unit
    from kernel.db.tables import JobRecord
    from kernel.jobs.declarations import JobRef

app = App(
    no_args_is_help=True,
    help="Background jobs: waiting, running and finished ones, and those that run on a schedule.",
    epilog=examples(
        ("platformctl jobs list", "the newest jobs"),
        ("platformctl jobs list --status failed", "what went wrong"),
        ("platformctl jobs cancel ID", "stop a waiting or running job"),
        ("platformctl jobs schedules", "what runs on a schedule, and when next"),
    ),
)

JobId = Annotated[str, typer.Argument(help="The job's id, as `jobs list` shows it.", metavar="ID")]


@app.command(
    name="list",
    epilog=examples(
        ("platformctl jobs list --status running", "running now"),
        ("platformctl jobs list --json", "for scripts"),
    ),
)
def show_all(
    status: Annotated[
        str | None, typer.Option(help="Only jobs in this state: queued, running, done, failed or cancelled.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Number of jobs to show.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List jobs, newest first, including the platform's own."""
    from cli import console, running

    jobs = running.run(_list(_checked(status), limit))
    if as_json:
        console.print_json([_facts(job) for job in jobs])
        return
    rows = [(job.id, job.name, _state(job)) for job in jobs]
    console.print_table(("id", "kind", "state"), rows, "No jobs found.")


def _checked(status: str | None) -> str | None:
    from typing import get_args

    from kernel.jobs.kinds import Status

    if status is not None and status not in get_args(Status):
        raise typer.BadParameter(f"choose one of {', '.join(get_args(Status))}", param_hint="--status")
    return status


async def _list(status: str | None, limit: int) -> list[JobRecord]:
    from sqlalchemy import select

    from cli import running
    from kernel.db.tables import JobRecord

    query = select(JobRecord).order_by(JobRecord.created_at.desc(), JobRecord.id).limit(limit)
    if status is not None:
        query = query.where(JobRecord.status == status)
    async with running.stored_platform(kernel_only=True) as platform:
        return await platform.database.read(lambda session: list(session.scalars(query)))


@app.command(epilog=examples(("platformctl jobs show ID", "state, progress, error")))
def show(job_id: JobId, as_json: AsJson = False) -> None:
    """Show one job."""
    from cli import console, running

    job = running.run(_get(job_id))
    if as_json:
        console.print_json(_facts(job))
        return
    facts = {name: "" if value is None else str(value) for name, value in _facts(job).items()}
    console.print_facts([(name.replace("_", " "), value) for name, value in facts.items()])


async def _get(job_id: str) -> JobRecord:
    from cli import running
    from kernel.db.tables import JobRecord

    async with running.stored_platform(kernel_only=True) as platform:
        job = await platform.database.read(lambda session: session.get(JobRecord, job_id))
    if job is None:
        raise _missing(job_id)
    return job


def _missing(job_id: str) -> Exception:
    from cli.failures import Missing

    return Missing(f"no job has the id '{job_id}'", "See them: platformctl jobs list")


@app.command(epilog=examples(("platformctl jobs cancel ID", "its worker stops at once")))
def cancel(job_id: JobId) -> None:
    """Cancel a waiting or running job."""
    from cli import console, running
    from cli.failures import Refused
    from kernel.jobs.kinds import UNDER_WAY

    status = running.run(_cancel(job_id))
    if status not in UNDER_WAY:
        raise Refused(f"the job has already ended: {status}")
    console.done(f"{job_id} is cancelled" if status == "queued" else f"{job_id} will stop shortly")


async def _cancel(job_id: str) -> str:
    """The status that the job had."""
    from cli import running
    from kernel.plugins.offers import OFFERS

    async with running.stored_platform() as platform:
        running.refuse_behind(platform)
        return await platform.database.write(_cancel_record, job_id, platform.resource(OFFERS).jobs)


def _cancel_record(unit: Unit, job_id: str, jobs: dict[str, JobRef]) -> str:
    from kernel.auth.audit import audit
    from kernel.db.tables import JobRecord
    from kernel.jobs.cancellation import request_cancel
    from kernel.jobs.kinds import UNDER_WAY

    record = unit.session.get(JobRecord, job_id, with_for_update=True)
    if record is None:
        raise _missing(job_id)
    status = str(record.status)
    if status in UNDER_WAY:
        request_cancel(unit, record, jobs.get(record.name))
        audit(unit, "job.cancelled", "job", job_id)
    return status


@app.command(epilog=examples(("platformctl jobs schedules --json", "for scripts")))
def schedules(as_json: AsJson = False) -> None:
    """List scheduled jobs: when each runs next, and how its last run ended."""
    from cli import console, running

    entries = running.run(_schedules())
    if as_json:
        console.print_json(entries)
        return
    rows = [
        (
            item["job"],
            item["schedule"],
            _moment(item["next"]),
            _moment(item["last"]),
            _styled(item["last_status"] or ""),
        )
        for item in entries
    ]
    columns = ("job", "schedule", "next (UTC)", "last (UTC)", "ended")
    console.print_table(columns, rows, "No job has a schedule.")


async def _schedules() -> list[dict[str, Any]]:
    from cli import running
    from kernel.jobs.schedules import schedules_of

    async with running.stored_platform() as platform:
        runs = await platform.database.read(_runs_by_job)
        declared = schedules_of(platform)
    unknown = {"next": None, "last": None, "last_status": None}
    return [
        {
            "job": schedule.job.name,
            "plugin": schedule.plugin,
            "schedule": schedule.cron,
            **runs.get(schedule.job.name, unknown),
        }
        for schedule in declared
    ]


def _runs_by_job(session: Session) -> dict[str, dict[str, Any]]:
    """The next and last run and how the last one ended, by job name."""
    from sqlalchemy import select

    from kernel.db.tables import JobRecord, ScheduleRecord

    query = select(
        ScheduleRecord.name, ScheduleRecord.next_at, ScheduleRecord.last_at, JobRecord.status
    ).outerjoin(JobRecord, JobRecord.id == ScheduleRecord.job_id)
    return {
        name: {"next": next_at, "last": last_at, "last_status": status}
        for name, next_at, last_at, status in session.execute(query)
    }


def _facts(job: JobRecord) -> dict[str, Any]:
    return {
        "id": job.id,
        "kind": job.name,
        "status": job.status,
        "title": job.title,
        "lane": job.lane,
        "owner_id": job.owner_id,
        "subject": job.subject,
        "done": job.done,
        "total": job.total,
        "unit": job.unit or None,
        "message": job.message or None,
        "error": job.error,
        "result": job.result,
        "attempts": job.attempts,
        "created_at": job.created_at,
        "started_at": job.started_at,
        "finished_at": job.finished_at,
        "cancel_requested_at": job.cancel_requested_at,
    }


def _state(job: JobRecord) -> Any:
    from rich.text import Text

    lines = [text for text in (_progress(job), _remark(job)) if text]
    return Text("\n").join([_styled(job.status), *map(Text, lines)])


def _progress(job: JobRecord) -> str:
    if not job.unit:
        return ""
    return f"{job.done} of {job.total} {job.unit}" if job.total is not None else f"{job.done} {job.unit}"


def _remark(job: JobRecord) -> str:
    from kernel.jobs.kinds import UNDER_WAY

    doing = job.message if job.status in UNDER_WAY else ""
    return str(job.error or doing or job.title or "")


def _moment(value: Any) -> str:
    return f"{value:%Y-%m-%d %H:%M}" if value else ""


def _styled(status: str) -> Any:
    from rich.text import Text

    return Text(status, {"done": "green", "failed": "bold red"}.get(status, "yellow"))
