"""What plugins hand each other holds together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from kernel.sdk import Embedded, contracts


@pytest.mark.parametrize(
    ("name", "media_types", "target", "reason"),
    [
        ("", ["text/x"], "shop.parsing:parse", "a name"),
        ("x", [], "shop.parsing:parse", "media types"),
        ("x", "text/x", "shop.parsing:parse", "a list of media types"),
        ("x", ["text/x"], "shop.parsing.parse", "target of the parser 'x'"),
    ],
)
def test_a_parser_that_is_none(name: str, media_types: Sequence[str], target: str, reason: str) -> None:
    """A parser without a name, a list of types or a function is refused where it is declared."""
    with pytest.raises(ValueError, match=reason):
        contracts.DocumentParser(name, media_types, target, lambda head: None)


@pytest.mark.parametrize(
    ("vectors", "engine", "reason"),
    [
        ([[0.6, 0.8], [3.0, 4.0]], "mine", "vector 1 has the length 5 instead of 1"),
        ([[float("nan"), 1.0]], "mine", "vector 0 has the length nan"),
        ([0.6, 0.8], "mine", r"have the shape \(2,\)"),
        ([[["a"]]], "mine", "could not convert"),
        ([[0.6, 0.8]], None, "engine must be named"),
        ([[0.6, 0.8]], "m" * 256, "at most 255 characters"),
    ],
)
def test_vectors_that_nobody_can_compare(vectors: Any, engine: Any, reason: str) -> None:
    """They are refused where they are made, so that their plugin is told what is wrong with them."""
    with pytest.raises(ValueError, match=reason):
        Embedded(vectors, engine)


def test_vectors_in_other_forms() -> None:
    """Lists and other precisions become what searches use; a text that says nothing may have zeros."""
    made = Embedded([[0.6, 0.8], [0.0, 0.0]], "mine")  # type: ignore[arg-type]
    assert (made.vectors.dtype, made.vectors.shape) == (np.float32, (2, 2))
    assert Embedded(np.zeros((0, 2), np.float16), "mine").vectors.dtype == np.float32  # type: ignore[arg-type]
