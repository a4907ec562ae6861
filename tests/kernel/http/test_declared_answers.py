"""An answer that does not fit its route's declaration fails in tests, where somebody can mend it."""

from __future__ import annotations

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


def answering(value: Any) -> Plugin:
    """A plugin whose one route promises a note and answers `value`."""
    table = RouteTable("Notes")

    @table.get("/v1/notes", access=PUBLIC, returns=Note)
    async def read(_ctx: Context) -> Any:
        """A note."""
        return value

    class Notes(Plugin):
        name = "notes"

        @hookimpl
        def register_routes(self) -> list[RouteTable]:
            return [table]

    return Notes()


@pytest.mark.parametrize(
    "value",
    [Letter(sender="ana"), {"text": "hello"}, Note.model_construct(text=7), None],
    ids=["another model", "a dictionary", "a field of another type", "nothing"],
)
async def test_a_wrong_answer(start_platform: Start, value: Any) -> None:
    """Under test it is a 500."""
    strict = await start_platform(answering(value))
    assert (await strict.anonymous.get("/v1/notes")).status == 500


async def test_a_fitting_answer(start_platform: Start) -> None:
    """What fits is answered, in strict mode too."""
    running = await start_platform(answering(Note(text="hello")))
    assert (await running.anonymous.get("/v1/notes")).json() == {"text": "hello", "stars": 0}


async def test_a_server_is_lenient(start_platform: Start) -> None:
    """Outside tests a client is not refused for it."""
    running = await start_platform(
        answering(Note.model_construct(text=7)), env={"PLATFORM_STRICT_ANSWERS": None}
    )
    with pytest.warns(UserWarning, match="serialized"):
        assert (await running.anonymous.get("/v1/notes")).json() == {"text": 7, "stars": 0}
