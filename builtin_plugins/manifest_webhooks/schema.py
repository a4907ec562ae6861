"""Compiles the published JSON Schema of manifests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from jsonschema import Draft7Validator, SchemaError, ValidationError, validators
from jsonschema.protocols import Validator

_DOLLAR = re.compile(r"\\.|\[(?:\\.|[^\]\\])*+(?:\]|\Z)|\$", re.DOTALL)


class SchemaUnusable(ValueError):
    """The schema document is not a draft-07 schema; the installation is damaged."""


def compile_schema(document: Mapping[str, Any]) -> Validator:
    """Check a draft-07 schema and return its validator; raises SchemaUnusable.

    `pattern` is read as ECMA-262 reads it: `$` is the end of the text, where Python would also accept a
    line feed before the end (JSON Schema Validation draft-07, section 6.3.3).
    """
    try:
        Draft7Validator.check_schema(document)
    except SchemaError as error:
        raise SchemaUnusable(f"The manifest schema is not valid draft-07: {error.message}") from error
    return _EcmaValidator(document)


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not _ecma(pattern).search(instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


@lru_cache(maxsize=64)
def _ecma(pattern: str) -> re.Pattern[str]:
    return re.compile(_DOLLAR.sub(lambda match: r"\Z" if match[0] == "$" else match[0], pattern))


_EcmaValidator: Any = validators.extend(Draft7Validator, {"pattern": _pattern})
