"""Looks for damage in the database's file every night, so that it is known before backups of it are all there
is.
"""

from __future__ import annotations

import logging

from sqlalchemy.exc import SQLAlchemyError

from kernel.sdk import Job, JobFailed, NoPayload, Platform
from kernel.sdk.operations import FOR_OPERATORS

log = logging.getLogger("platform.db")

DAMAGED = "database.damaged"
"""The topic of a notice to all processes that the database is damaged."""


async def _check(platform: Platform, _: NoPayload) -> None:
    database = platform.database
    report = await database.find_damage()
    if report is None:
        return
    log.error("%s; SQLite says: %s", FOR_OPERATORS["damaged"], report)
    database.damaged = True
    try:
        await database.write(lambda unit: unit.notify(DAMAGED, "1"))
    except SQLAlchemyError as error:
        log.error("other processes can't be told of the damage: %s", type(error).__name__)
    raise JobFailed(FOR_OPERATORS["damaged"])


def hear_of_damage(platform: Platform) -> None:
    """Hear of damage that another process has found."""

    def hear(_: str) -> None:
        platform.database.damaged = True

    platform.notices.listen(DAMAGED, hear)


CHECK_DATABASE = Job("kernel.check_database", NoPayload, _check, lane="large", schedule="20 4 * * *")
