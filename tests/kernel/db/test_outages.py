"""Work that is tried again until the database is back."""

from __future__ import annotations

import asyncio
import errno
import logging

import pytest
from sqlalchemy.exc import OperationalError, ProgrammingError

from kernel.db.outages import Outage


async def test_each_outage_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """However often the work fails meanwhile, with the kind of the error and without its text."""
    outage = Outage(logging.getLogger("platform.test"), "clocks can't be wound")
    for _ in range(2):
        for error in (OperationalError("SELECT 'private'", {}, ValueError()), OSError(errno.ENOSPC, "full")):
            with outage.tolerated():
                await asyncio.sleep(0)
                raise error
            assert outage.lasts
        with outage.tolerated():
            await asyncio.sleep(0)
        assert not outage.lasts
    assert [message.startswith("clocks can't be wound ") for message in caplog.messages] == [True, True]
    assert [message.endswith(": OperationalError") for message in caplog.messages] == [True, True]


async def test_a_faulty_statement_is_told_as_such(caplog: pytest.LogCaptureFixture) -> None:
    """It does not go away when the database is back."""
    outage = Outage(logging.getLogger("platform.test"), "clocks can't be wound")
    for _ in range(2):
        with outage.tolerated():
            raise ProgrammingError("SELECT 'private'", {}, ValueError())
    assert caplog.messages == ["clocks can't be wound: ProgrammingError"]


async def test_other_errors_are_raised() -> None:
    """A mistake of the program is not taken for an outage."""
    outage = Outage(logging.getLogger("platform.test"), "clocks can't be wound")
    with pytest.raises(KeyError), outage.tolerated():
        raise KeyError("spring")
    assert not outage.lasts
