"""Templates of a manifest: dot-paths into the payload, and nothing else (wire format section 6.4)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .problems import ROOT, shorten

MAX_RENDERED_CHARS = 1024 * 1024

_PLACEHOLDER = re.compile(r"\{\{\s*\.([\w.]+(?:\[[0-9]{1,6}\][\w.]*)*)\s*\}\}")
_NUMBER = re.compile(r"\[[0-9]{1,6}\]")
_BRACES = re.compile(r"\{\{([^{}\n]{0,200})(?:\}\})?")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class TemplateError(ValueError):
    """The payload lacks what a template needs.

    `path` is the dot-path with its leading dot, or `root` when the result as a whole is at fault.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{shorten(path)}: {reason}")
        self.path = path
        self.reason = reason


class MissingValue(TemplateError):
    """The payload lacks a value, it is null, or nothing is left of the text."""


@dataclass(frozen=True, slots=True)
class Template:
    """Literal texts and the dot-paths between them: one more literal than paths."""

    literals: tuple[str, ...]
    paths: tuple[str, ...]

    def render(self, payload: Mapping[str, Any], max_chars: int = MAX_RENDERED_CHARS) -> str:
        """Fill in the template; at most `max_chars` characters.

        Text stays as it is, numbers and booleans are written as in JSON, objects and arrays as compact JSON.
        Raises TemplateError for a missing or null value, a path into something that is not an object, a
        result that is too long, and characters that cannot be stored.
        """
        parts, length = [self.literals[0]], len(self.literals[0])
        for path, literal in zip(self.paths, self.literals[1:], strict=True):
            if length > max_chars:
                break
            text = _value_text(payload, path)
            parts += (text, literal)
            length += len(text) + len(literal)
        if length > max_chars:
            raise TemplateError(ROOT, f"the rendered text is longer than {max_chars} characters")
        return "".join(parts)


def compile_template(text: str) -> Template:
    """Split a template at its `{{ .a.b }}` placeholders, in linear time; whatever is not one stays literal.

    A name has letters, digits and underscores; dots separate names; the first dot is required. An item of a
    list is named by its number, from 0: `{{ .a[0].b }}`.
    """
    pieces = _PLACEHOLDER.split(text)
    return Template(literals=tuple(pieces[0::2]), paths=tuple(pieces[1::2]))


def malformed_expressions(text: str) -> list[tuple[str, str]]:
    """Expressions in braces that are not replaced, each with what to write instead."""
    matches = [match for literal in compile_template(text).literals for match in _BRACES.finditer(literal)]
    return [
        (shorten(match[0]), _instead(match[1].strip(" -$."), match[0].endswith("}}"))) for match in matches
    ]


def _instead(name: str, is_closed: bool) -> str:
    if not is_closed:
        return "Close it with }}."
    if re.fullmatch(r"\w[\w.]*(?:\[[0-9]{1,6}\][\w.]*)*", name):
        return f"Did you mean {{{{ .{name} }}}}?"
    return "Write {{ .a.b }} or {{ .a[0].b }}: a dot, then names of letters, digits and _; no filters."


def render_metadata(
    mapping: Mapping[str, Any], payload: Mapping[str, Any], max_chars: int = MAX_RENDERED_CHARS
) -> dict[str, Any]:
    """Render the texts of `mapping` and of the objects inside it; other values are kept as they are.

    `max_chars` bounds all rendered texts together. Raises TemplateError, as Template.render does.
    """
    rendered, _ = _render_mapping(mapping, payload, max_chars)
    return rendered


def _render_mapping(
    mapping: Mapping[str, Any], payload: Mapping[str, Any], room: int
) -> tuple[dict[str, Any], int]:
    rendered: dict[str, Any] = {}
    for key, value in mapping.items():
        if isinstance(value, str):
            rendered[key] = compile_template(value).render(payload, room)
            room -= len(rendered[key])
        elif isinstance(value, Mapping):
            rendered[key], room = _render_mapping(value, payload, room)
        else:
            rendered[key] = value
    return rendered, room


def _value_text(payload: Mapping[str, Any], path: str) -> str:
    value = look_up(payload, path)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if _UNSTORABLE.search(text):
        raise TemplateError(f".{path}", "the value has a NUL character or half of a surrogate pair")
    return text


def look_up(payload: Mapping[str, Any], path: str) -> Any:
    """The value at a dot-path without its leading dot. Raises MissingValue."""
    names = names_in(path)
    value: Any = payload
    for depth, name in enumerate(names):
        if isinstance(name, int):
            value = _item(value, name, f".{path}", _prefix(names[:depth]))
            continue
        if not isinstance(value, Mapping):
            raise MissingValue(f".{path}", f"{_prefix(names[:depth])} is {_kind(value)}, not an object")
        if name not in value:
            raise MissingValue(f".{path}", f"{_prefix(names[: depth + 1])} is missing from the payload")
        value = value[name]
    if value is None:
        raise MissingValue(f".{path}", "the value is null")
    return value


def names_in(path: str) -> list[str | int]:
    """The names in a dot-path, and the numbers of items of lists."""
    parts = path.replace("[", ".[").split(".")
    return [int(part[1:-1]) if _NUMBER.fullmatch(part) else part for part in parts]


def _item(value: Any, number: int, path: str, place: str) -> Any:
    if not isinstance(value, list):
        raise MissingValue(path, f"{place} is {_kind(value)}, not a list")
    if number >= len(value):
        raise MissingValue(path, f"{place} has only {len(value)} items")
    return value[number]


def _prefix(names: Sequence[str | int]) -> str:
    return shorten("".join(f"[{name}]" if isinstance(name, int) else f".{name}" for name in names))


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list):
        return "a list"
    return "text" if isinstance(value, str) else "a single value"
