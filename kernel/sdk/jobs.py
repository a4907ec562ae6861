"""Jobs beyond declaring and enqueueing them: showing, cancelling, running several together."""

from kernel.db.tables import JobRecord
from kernel.jobs.batching import Together
from kernel.jobs.cancellation import declared_jobs, request_cancel
from kernel.jobs.declarations import JobMoved
from kernel.jobs.figures import read_queue
from kernel.jobs.kinds import CHANGED, LANES, UNDER_WAY, Gather, Lane, Status
from kernel.jobs.queue import others_wait, place_jobs_again

__all__ = [
    "CHANGED",
    "LANES",
    "UNDER_WAY",
    "Gather",
    "JobMoved",
    "JobRecord",
    "Lane",
    "Status",
    "Together",
    "declared_jobs",
    "others_wait",
    "place_jobs_again",
    "read_queue",
    "request_cancel",
]
