"""Jobs beyond declaring and enqueueing them: following, cancelling, running several together."""

from kernel.db.tables import JobRecord
from kernel.jobs.batching import Together
from kernel.jobs.declarations import JobMoved
from kernel.jobs.following import cancel_job, follow_job, get_job, running_jobs
from kernel.jobs.kinds import UNDER_WAY, Gather, Lane
from kernel.jobs.queue import others_wait, place_jobs_again
from kernel.jobs.schemas import JobOut

__all__ = [
    "UNDER_WAY",
    "Gather",
    "JobMoved",
    "JobOut",
    "JobRecord",
    "Lane",
    "Together",
    "cancel_job",
    "follow_job",
    "get_job",
    "others_wait",
    "place_jobs_again",
    "running_jobs",
]
