"""The schema of an action's arguments, as models and tool servers read it."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from builtin_plugins.tools.parameters import parameters_schema
from kernel.sdk import AUTHENTICATED, PUBLIC, Action, Permission, permission
from kernel.sdk.http import Access


class Part(BaseModel):
    """A part."""

    title: str = Field(description="Its title.")
    parts: list[Part] = Field(default_factory=list)


class Wanted(BaseModel):
    """What is wanted."""

    kind: Literal["a", "b"] = "a"
    count: int | None = Field(None, ge=1, description="How many.")
    either: int | str = 0
    part: Part | None = None
    many: dict[str, Part] = Field(default_factory=dict)


async def nothing(_ctx: Any, _wanted: Any) -> None:
    return None


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    return parameters_schema(model)


def test_plain_schema() -> None:
    """No titles, references or unions with null; a property that is called title stays."""
    properties = schema_of(Wanted)["properties"]
    assert properties["kind"] == {"type": "string", "enum": ["a", "b"], "default": "a"}
    assert properties["count"] == {"type": "integer", "minimum": 1, "description": "How many."}
    assert properties["either"] == {"anyOf": [{"type": "integer"}, {"type": "string"}], "default": 0}
    part = properties["part"]
    assert part["properties"]["title"] == {"type": "string", "description": "Its title."}
    assert properties["many"]["additionalProperties"]["properties"]["title"]["type"] == "string"


def test_circle() -> None:
    """A model that holds itself ends in any object instead of without end."""
    part = schema_of(Part)
    assert part["properties"]["parts"]["items"] == {"type": "object"}
    assert "$ref" not in str(part) and "$defs" not in str(part)


def test_no_arguments() -> None:
    """An action without arguments still has an object for them."""

    class Nothing(BaseModel):
        pass

    assert schema_of(Nothing) == {"type": "object", "properties": {}}


def action(access: Access = AUTHENTICATED, **declared: Any) -> Action:
    return Action("act", "Acts.", Wanted, nothing, access=access, **declared)


@pytest.mark.parametrize(
    ("declared", "hints"),
    [
        ({}, (False, True, False, True)),
        ({"read_only": True}, (True, False, True, True)),
        ({"destructive": False, "idempotent": True, "open_world": False}, (False, False, True, False)),
    ],
)
def test_annotations(declared: dict[str, bool], hints: tuple[bool, ...]) -> None:
    """Defaults are MCP's: an action that writes may be destructive."""
    names = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
    assert action(**declared).annotations == dict(zip(names, hints, strict=True))


KEYS = {
    "shop.sell": Permission("shop.sell", "Sell."),
    "org.shop": Permission("org.shop", "Sell for an organization.", scope="organization"),
}


@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        ({}, None),
        ({"access": PUBLIC, "read_only": True}, None),
        ({"access": permission("shop.sell")}, None),
        ({"access": PUBLIC}, "not read-only"),
        ({"access": None}, "does not say who may use it"),
        ({"read_only": True, "destructive": True}, "choose one"),
        ({"access": permission("shop.steal")}, "no plugin declares"),
        ({"access": permission("org.shop", within="org_id")}, "within one organization"),
        ({"access": permission("shop.sell", or_self="user_id")}, "account"),
    ],
)
def test_problem(declared: dict[str, Any], problem: str | None) -> None:
    """A declaration that opens more than it says, or that nobody could be allowed, is named."""
    found = action(**declared).problem(KEYS)
    assert found is None if problem is None else problem in (found or "")
