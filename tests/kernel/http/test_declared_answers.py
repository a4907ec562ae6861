"""An answer becomes what its route declares, or a 500: a client never gets anything else."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from kernel.sdk import PUBLIC, Context, Plugin, RouteTable, hookimpl
from kernel.testing import Start


class Note(BaseModel):
    text: str
    stars: int = 0


class Letter(BaseModel):
    sender: str


class Draft(Note):
    secret: str = "hunter2"


@dataclass
class Row:
    text: str
    secret: str = "hunter2"


def answering(value: Any, returns: Any = Note) -> Plugin:
    """A plugin whose one route promises a note and answers `value`."""
    table = RouteTable("Notes")

    @table.get("/v1/notes", access=PUBLIC, returns=returns)
    async def read(_ctx: Context) -> Any:
        """A note."""
        return value

    class Notes(Plugin):
        name = "notes"

        @hookimpl
        def register_routes(self) -> list[RouteTable]:
            return [table]

    return Notes()


STRICT: list[dict[str, str | None]] = [{}, {"PLATFORM_STRICT_ANSWERS": None}]
either = pytest.mark.parametrize("env", STRICT, ids=["tests", "a server"])


@either
@pytest.mark.parametrize(
    ("value", "returns", "said"),
    [
        (Letter(sender="ana"), Note, "a Letter .*: text: "),
        ({"text": ["hunter2"]}, Note, "a dict .*: text: "),
        (None, Note, "a NoneType "),
        ([Note(text="hello"), 7], list[Note], "a list .*: 1: "),
    ],
    ids=["another model", "a field of another type", "nothing", "a wrong item"],
)
async def test_a_wrong_answer(
    start_platform: Start,
    caplog: pytest.LogCaptureFixture,
    env: dict[str, str | None],
    value: Any,
    returns: Any,
    said: str,
) -> None:
    """It is a 500. The log says what does not fit, without the values, which may be secret."""
    running = await start_platform(answering(value, returns), env=env)
    with caplog.at_level(logging.ERROR):
        answer = await running.anonymous.get("/v1/notes")
    assert (answer.status, answer.json()["code"]) == (500, "internal_error")
    assert re.search(f"GET /v1/notes .*{said}", caplog.text)
    assert "hunter2" not in caplog.text


@either
@pytest.mark.parametrize(
    "value",
    [Note(text="hello"), {"text": "hello", "secret": "hunter2"}, Row("hello"), Draft(text="hello")],
    ids=["the model", "a dictionary", "a row", "a model with more fields"],
)
async def test_a_fitting_answer(start_platform: Start, env: dict[str, str | None], value: Any) -> None:
    """What can be read as the model becomes it: with its defaults, and without what it does not declare."""
    running = await start_platform(answering(value), env=env)
    assert (await running.anonymous.get("/v1/notes")).json() == {"text": "hello", "stars": 0}


async def test_a_field_that_was_never_checked(start_platform: Start) -> None:
    """A model is taken as it was checked when made; with strict answers, its contents are checked, too."""
    note = Note.model_construct(text=7)
    strict = await start_platform(answering(note))
    assert (await strict.anonymous.get("/v1/notes")).status == 500
