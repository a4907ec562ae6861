"""Long jobs as other plugins show them."""

from builtin_plugins.long_jobs.following import cancel_job, follow_job, get_job, jobs_at, running_jobs
from builtin_plugins.long_jobs.schemas import EndedJob, JobOut, RunningJob

__all__ = [
    "EndedJob",
    "JobOut",
    "RunningJob",
    "cancel_job",
    "follow_job",
    "get_job",
    "jobs_at",
    "running_jobs",
]
