"""What can go wrong with an archive."""

from __future__ import annotations

from kernel.sdk import BadRequest, Conflict, NotFound


class BackupFailed(Exception):
    """An archive can't be made, read or restored. The public text tells why and what to do."""


class StorageAway(BackupFailed):
    """The backup storage is unreachable or refuses access; another attempt may succeed."""


class ArchiveBroken(BackupFailed):
    """An archive is damaged, incomplete, or not one of the platform's."""


class ArchiveNotFound(NotFound):
    code = "backup_not_found"
    default_detail = "No such backup"


class BackupJobNotFound(NotFound):
    code = "backup_job_not_found"
    default_detail = "No such backup job"


class DrillUnderWay(Conflict):
    code = "drill_under_way"
    default_detail = "This backup is already being rehearsed; GET /v1/backups/jobs shows the job"


class NotConfirmed(BadRequest):
    code = "restore_not_confirmed"
    default_detail = "confirm_filename must be the name of the backup"
