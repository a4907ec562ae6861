"""Vectors that plugins make are checked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from builtin_plugins.inference.api import Embedded


@pytest.mark.parametrize(
    ("vectors", "engine", "reason"),
    [
        ([[0.6, 0.8], [3.0, 4.0]], "mine", "vector 1 .* 5 "),
        ([[float("nan"), 1.0]], "mine", "vector 0 .* nan"),
        ([0.6, 0.8], "mine", r"\(2,\)"),
        ([[["a"]]], "mine", "could not convert"),
        ([[0.6, 0.8]], None, "engine"),
        ([[0.6, 0.8]], "m" * 256, " 255 "),
    ],
)
def test_vectors_that_nobody_can_compare(vectors: Any, engine: Any, reason: str) -> None:
    """They are refused where they are made, so that the error names what is wrong in the plugin."""
    with pytest.raises(ValueError, match=reason):
        Embedded(vectors, engine)


def test_vectors_in_other_forms() -> None:
    """Lists and other precisions become what searches use; a text that says nothing may have zeros."""
    made = Embedded([[0.6, 0.8], [0.0, 0.0]], "mine")  # type: ignore[arg-type]
    assert (made.vectors.dtype, made.vectors.shape) == (np.float32, (2, 2))
    assert Embedded(np.zeros((0, 2), np.float16), "mine").vectors.dtype == np.float32  # type: ignore[arg-type]
