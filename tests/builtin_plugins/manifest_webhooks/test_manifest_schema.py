"""The published schema and its reading of patterns."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft7Validator

from builtin_plugins.manifest_webhooks.schema import SchemaUnusable, compile_schema


def test_published_schema_is_draft_07_and_self_contained(schema_document: dict[str, Any]) -> None:
    assert schema_document["$schema"] == "http://json-schema.org/draft-07/schema#"
    Draft7Validator.check_schema(schema_document)
    assert "$ref" not in str(schema_document)


def _properties(schema: dict[str, Any]) -> list[dict[str, Any]]:
    own = list(schema.get("properties", {}).values())
    return own + [deeper for child in own for deeper in _properties(child)]


def test_every_property_is_described(schema_document: dict[str, Any]) -> None:
    """Editors and remedies show title and description, so each property has both."""
    properties = _properties(schema_document)
    assert len(properties) == 27
    assert all(item.get("title") and item.get("description") for item in properties)


def test_defaults(schema_document: dict[str, Any]) -> None:
    """What may be left out names what counts then."""
    found = {item["default"] for item in _properties(schema_document) if "default" in item}
    assert found == {"POST", "all-minilm", "authenticated", "error"}


@pytest.mark.parametrize(("value", "good"), [("abc", True), ("abc\n", False), ("ab$", False), ("", False)])
def test_dollar_is_the_end_of_the_text(value: str, good: bool) -> None:
    """A trailing line feed does not slip through `$`, as it would with Python's own reading."""
    schema = compile_schema({"type": "string", "pattern": "^[a-z]+$"})
    assert schema.is_valid(value) is good


@pytest.mark.parametrize("pattern", [r"^a\$$", "^a[$]$"])
def test_escaped_dollar_stays_a_character(pattern: str) -> None:
    schema = compile_schema({"type": "string", "pattern": pattern})
    assert schema.is_valid("a$")
    assert not schema.is_valid("a")


def test_damaged_schema_is_named() -> None:
    """A document that is no schema is refused at start, with its reason."""
    with pytest.raises(SchemaUnusable, match="draft-07"):
        compile_schema({"type": 7})
