"""Errors for clients when a store fails: an unavailable database, a fault of the machine."""

from __future__ import annotations

import logging

from kernel.db.outages import is_lost, is_outage, is_read_only
from kernel.errors import PlatformError, Unavailable
from kernel.process.machine_faults import machine_fault, public_error
from kernel.stores.disk import DiskSpace

log = logging.getLogger("platform")

READ_ONLY = "The database is read-only, so nothing can be saved; try again later"


def store_error(error: BaseException, disk: DiskSpace) -> PlatformError | None:
    """The error for clients if a store or the machine failed, which is also logged; otherwise None."""
    fault = machine_fault(error)
    if fault is None and not is_outage(error):
        return None
    if fault == "disk" and disk.is_short():
        fault = "disk_full"
    # No traceback for errors that every request hits: they would fill the disk.
    exc_info = None if fault in ("disk_full", "damaged") or is_lost(error) or is_read_only(error) else error
    log.error("%s: %s", fault or _brief(error), type(error).__name__, exc_info=exc_info)
    if fault is not None:
        return public_error(fault)
    return Unavailable(READ_ONLY if is_read_only(error) else "The database is unreachable; try again")


def _brief(error: BaseException) -> str:
    return "the database is read-only" if is_read_only(error) else "a store is unreachable"
