"""The schema of an action's arguments, as models and tool servers read it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from kernel.sdk import Action


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
    return Action("act", "Acts.", model, nothing).parameters_schema()


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
