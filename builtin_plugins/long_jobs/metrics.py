"""The queue at `/metrics`."""

from __future__ import annotations

from kernel.sdk import Platform
from kernel.sdk.jobs import LANES, UNDER_WAY, read_queue


def offer_figures(platform: Platform) -> None:
    """Show how many jobs wait or run, for how long, and how many workers there are."""
    metrics = platform.metrics
    jobs = metrics.gauge("jobs_under_way", "Jobs that are waiting or running.", ("lane", "status"))
    oldest = metrics.gauge("jobs_oldest_waiting_seconds", "Age of the oldest waiting job.", ("lane",))
    failed = metrics.gauge("jobs_failed_last_day", "Jobs that failed in the last 24 hours.")
    workers = metrics.gauge("job_workers", "Workers with a heartbeat in the last 30 seconds.")

    async def read() -> None:
        figures = await platform.database.read(read_queue)
        workers.set(figures.workers)
        failed.set(figures.failed_last_day)
        by_key = {(figure.lane, figure.status): figure for figure in figures.lanes}
        for lane in LANES:
            for status in UNDER_WAY:
                figure = by_key.get((lane, status))
                jobs.labels(lane, status).set(figure.jobs if figure else 0)
            waiting = by_key.get((lane, "queued"))
            oldest.labels(lane).set(waiting.oldest_seconds if waiting else 0)

    metrics.on_scrape(read)
