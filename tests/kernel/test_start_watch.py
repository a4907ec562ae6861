"""A step of a start that takes too long is told from a thread, and one that ends in time is not."""

from __future__ import annotations

import threading

import pytest

from kernel.plugins.watchdog import StartWatch

AT_ONCE, NEVER = 0.0, 3600.0


class Told:
    """What `on_stuck` heard."""

    def __init__(self) -> None:
        self.words: list[tuple[str, str]] = []
        self.heard = threading.Event()

    def __call__(self, plugin: str, step: str) -> None:
        self.words.append((plugin, step))
        self.heard.set()


def test_a_step_that_blocks() -> None:
    """While it lasts, somebody else hears which plugin and which step it is."""
    told = Told()
    with StartWatch(AT_ONCE, told).step("shelf", "opening its resources"):
        assert told.heard.wait(30)
    assert told.words == [("shelf", "opening its resources")]


@pytest.mark.parametrize("fails", [False, True])
def test_a_step_that_ends_in_time(fails: bool) -> None:
    """Nobody hears of it, and no thread waits on, whether it failed or not."""
    told, before = Told(), _timers()
    try:
        with StartWatch(NEVER, told).step("shelf", "starting"):
            assert len(_timers()) == len(before) + 1
            if fails:
                raise ValueError
    except ValueError:
        pass
    for thread in _timers():
        thread.join(30)
    assert _timers() == before and told.words == []


def _timers() -> list[threading.Timer]:
    return [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]


def test_each_step_has_its_own_time() -> None:
    """A second step is watched as the first was, under its own name."""
    told = Told()
    watch = StartWatch(AT_ONCE, told)
    for name in ("first", "second"):
        with watch.step(name, "starting"):
            assert told.heard.wait(30)
        told.heard.clear()
    assert told.words == [("first", "starting"), ("second", "starting")]


def test_nobody_to_tell() -> None:
    before = threading.active_count()
    with StartWatch(AT_ONCE, None).step("shelf", "starting"):
        assert threading.active_count() == before
