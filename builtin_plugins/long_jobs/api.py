"""Long jobs as other plugins show them."""

from builtin_plugins.long_jobs.following import cancel_job, follow_job, get_job, running_jobs
from builtin_plugins.long_jobs.schemas import JobOut, RunningJob

__all__ = ["JobOut", "RunningJob", "cancel_job", "follow_job", "get_job", "running_jobs"]
