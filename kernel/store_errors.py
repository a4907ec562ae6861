"""Errors for clients when a store fails: an unavailable database, a fault of the machine."""

from __future__ import annotations

import logging

from kernel.db.outages import is_outage
from kernel.errors import PlatformError, Unavailable
from kernel.machine_faults import machine_fault, public_error
from kernel.stores.disk import DiskSpace

log = logging.getLogger("platform")


def store_error(error: BaseException, disk: DiskSpace) -> PlatformError | None:
    """The error for clients if a store or the machine failed, which is also logged; otherwise None."""
    fault = machine_fault(error)
    if fault is None and not is_outage(error):
        return None
    if fault == "disk" and disk.is_short():
        fault = "disk_full"
    # No traceback: it would go to the full disk with every request.
    shown = None if fault == "disk_full" else error
    log.error("%s: %s", fault or "a store is unreachable", type(error).__name__, exc_info=shown)
    return Unavailable("The database is unreachable; try again") if fault is None else public_error(fault)
