"""JSON text into a bounded tree."""

from __future__ import annotations

import json
import re
from typing import Any

from .tree import MAX_NODES, TreeError, check_depth, check_float, check_int, check_text, duplicate

# The closing quote is optional so that an unterminated string is scanned once, not once for each quote.
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)


def read_json(text: str, *, fall_back: bool = False) -> Any:
    """Parse JSON (RFC 8259) with unique keys, finite 64-bit numbers and bounded depth; raises TreeError.

    With `fall_back`, text that is not JSON returns None: YAML's flow style begins with a brace too.
    """
    _check_nesting(text)
    try:
        tree = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_constant,
            parse_int=check_int,
            parse_float=check_float,
        )
    except json.JSONDecodeError as error:
        if fall_back:
            return None
        raise TreeError(
            f"This is not JSON: {error.msg}", "Correct the syntax.", line=error.lineno, column=error.colno
        ) from None
    _check_nodes(tree)
    return tree


def _check_nesting(text: str) -> None:
    """Count brackets outside strings first: the parser itself recurses once for each level."""
    depth = 0
    for bracket in _BRACKETS.finditer(text):
        if bracket[0] in "[{":
            depth += 1
            check_depth(depth)
        elif bracket[0] in "]}":
            depth -= 1


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    for key, value in pairs:
        if key in mapping:
            raise duplicate(key)
        mapping[check_text(key)] = value
    return mapping


def _constant(name: str) -> Any:
    raise TreeError(f"{name} is not JSON", "Use a finite number, or put quotes around it.")


def _check_nodes(tree: Any) -> None:
    pending, count = [tree], 0
    while pending:
        node = pending.pop()
        count += 1
        if count > MAX_NODES:
            raise TreeError(f"The document has more than {MAX_NODES} values", "Make it smaller.")
        if isinstance(node, str):
            check_text(node)
        elif isinstance(node, (dict, list)):
            pending.extend(node.values() if isinstance(node, dict) else node)
