"""What no database holds, found wherever it is."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from kernel.libs.storable import NOT_FINITE, NUL, first_unfit


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("a\0b", ((), NUL)),
        ({"a": [1, {"b": "\0"}], "c": 2}, (("a", 1, "b"), NUL)),
        ({"a": {}, "b": [[], [float("nan")]]}, (("b", 1, 0), NOT_FINITE)),
        ({"a": [[1], [2]], "b": {"c\0": 1}}, (("b",), f"has a name that {NUL}")),
        ({"a": [[1], [2]], "b": (3.5, "text")}, None),
    ],
)
def test_the_place_is_named(value: Any, found: Any) -> None:
    assert first_unfit(value) == found


def test_depth_does_not_multiply_the_memory() -> None:
    """Many values deep inside cost what they do at the top: a client of 2 MB can't take gigabytes."""
    value: Any = [["text"] for _ in range(20_000)]
    for _ in range(300):
        value = [value]
    tracemalloc.start()
    try:
        assert first_unfit(value) is None
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
