"""What answers of hooks are compared with: the types that their specifications name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypedDict

import pytest

from kernel.hooks.checks import AnswerChecks
from kernel.sdk import hookspec


class Label(TypedDict):
    """What is stuck to an article."""

    text: str


@hookspec.all
def list_labels() -> Sequence[Label] | None:
    """Labels of all articles."""


@hookspec.first
def find_anything() -> Any:
    """Whatever there is."""


@hookspec.first
def find_weight() -> Annotated[int, "grams"] | None:
    """The weight of all articles."""


@pytest.mark.parametrize(
    ("spec", "answer"),
    [
        (list_labels, [{"text": "nail"}]),
        (find_anything, 4),
        (find_weight, 4),
    ],
)
def test_types_that_say_too_little(spec: Any, answer: Any) -> None:
    """Where a type has no instances, no answer is refused."""
    AnswerChecks().check(spec, answer)
