"""YAML text into a bounded tree, built from parser events so that nothing grows before it is counted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import yaml

from .problems import join_path, shorten
from .tree import (
    MAX_MANIFEST_BYTES,
    MAX_NODES,
    TreeError,
    check_depth,
    check_float,
    check_int,
    check_text,
    duplicate,
)

# libyaml's parser is two orders of magnitude faster; PyYAML builds without it still read the same language.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_CONSTANTS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INDENTED_BY_TAB = re.compile(r" *\t")
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)\Z")
_FLOAT = re.compile(r"[-+]?(?:(?:\.[0-9]+|[0-9]+\.[0-9]*)(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)\Z")
_NOT_JSON = re.compile(r"[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z")
_CONVERSIONS: tuple[tuple[Callable[[str], re.Match[str] | None], Callable[[str], Any]], ...] = (
    (_INT.match, check_int),
    (_FLOAT.match, check_float),
)


def read_yaml(text: str) -> tuple[Any, dict[str, int]]:
    """Parse one YAML document with JSON's types only; raises TreeError with line and column.

    Also returns the line of each value's key, by the path that a `Problem` names.

    Plain scalars follow the core schema of YAML 1.2 (section 10.3) without hexadecimal and octal numbers, so
    dates, `on` and `yes` are text. Tags, merge keys, repeated keys, keys that are not text and further
    documents are refused. Aliases are expanded into copies that count against the bounds of the document.
    """
    composer = _Composer(yaml.parse(text, Loader=_LOADER))
    try:
        return composer.document(), composer.lines
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, text) from None
    except yaml.YAMLError as error:
        reason = getattr(error, "reason", "unreadable text")
        raise TreeError(f"This is not YAML: {reason}", "Remove the control characters.") from None


def _syntax_error(error: yaml.MarkedYAMLError, text: str) -> TreeError:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (None, None)
    remedy = (
        "Correct the syntax; mind indentation, the space after a colon, and quotes around special characters."
    )
    if mark and any(map(_INDENTED_BY_TAB.match, text.split("\n")[mark.line : mark.line + 1])):
        remedy = "Indent with spaces: YAML allows no tabs there."
    return TreeError(f"This is not YAML: {error.problem or error.context}", remedy, line=line, column=column)


class _Composer:
    """Builds one tree from the events of a parser, counting values and characters as it goes."""

    def __init__(self, events: Iterator[Any]) -> None:
        self._events = events
        self.lines: dict[str, int] = {}
        self._anchors: dict[str, Any] = {}
        self._keys: list[object] = []
        self._nodes = 0
        self._size = 0

    def document(self) -> Any:
        next(self._events)
        if isinstance(next(self._events), yaml.StreamEndEvent):
            raise TreeError("The document is empty", "Write a manifest; manifests/samples/ has some.")
        tree = self._node(next(self._events), 1)
        next(self._events)
        if not isinstance(next(self._events), yaml.StreamEndEvent):
            raise TreeError("The file has more than one document", "Put each manifest into its own file.")
        return tree

    def _node(self, event: Any, depth: int) -> Any:
        try:
            return (
                self._alias(event, depth) if isinstance(event, yaml.AliasEvent) else self._value(event, depth)
            )
        except TreeError as error:
            error.locate(self._keys, event.start_mark.line + 1, event.start_mark.column + 1)
            raise

    def _value(self, event: Any, depth: int) -> Any:
        check_depth(depth)
        if event.tag is not None:
            raise TreeError(
                f"The tag {shorten(event.tag)} is not allowed", "Remove it; put quotes around text."
            )
        value = self._untagged(event, depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = value
        return value

    def _untagged(self, event: Any, depth: int) -> Any:
        if isinstance(event, yaml.ScalarEvent):
            self._count(event.value)
            return _resolve(event.value) if event.implicit[0] else check_text(event.value)
        self._count("")
        return self._list(depth) if isinstance(event, yaml.SequenceStartEvent) else self._dict(depth)

    def _list(self, depth: int) -> list[Any]:
        items: list[Any] = []
        for event in iter(lambda: next(self._events), None):
            if isinstance(event, yaml.SequenceEndEvent):
                return items
            self._keys.append(len(items))
            items.append(self._node(event, depth + 1))
            self._keys.pop()
        return items

    def _dict(self, depth: int) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        for event in iter(lambda: next(self._events), None):
            if isinstance(event, yaml.MappingEndEvent):
                return mapping
            key = self._key(event, mapping)
            self._keys.append(key)
            self.lines[join_path(self._keys)] = event.start_mark.line + 1
            mapping[key] = self._node(next(self._events), depth + 1)
            self._keys.pop()
        return mapping

    def _key(self, event: Any, mapping: dict[str, Any]) -> str:
        try:
            key = _text_key(event)
            self._count(key)
            if key in mapping:
                raise duplicate(key)
            return key
        except TreeError as error:
            error.locate(self._keys, event.start_mark.line + 1, event.start_mark.column + 1)
            raise

    def _alias(self, event: Any, depth: int) -> Any:
        if event.anchor not in self._anchors:
            raise TreeError(
                f"The alias *{shorten(event.anchor)} does not refer to an earlier anchor",
                "Write the value out in full.",
            )
        return self._copy(self._anchors[event.anchor], depth)

    def _copy(self, value: Any, depth: int) -> Any:
        check_depth(depth)
        self._count(value if isinstance(value, str) else "")
        if isinstance(value, dict):
            self._size += sum(map(len, value))
            return {key: self._copy(item, depth + 1) for key, item in value.items()}
        return [self._copy(item, depth + 1) for item in value] if isinstance(value, list) else value

    def _count(self, text: str) -> None:
        self._nodes += 1
        self._size += len(text)
        if self._nodes > MAX_NODES or self._size > MAX_MANIFEST_BYTES:
            raise TreeError(
                f"The document expands to more than {MAX_NODES} values or {MAX_MANIFEST_BYTES} characters",
                "Make it smaller, and write values out instead of repeating them with aliases.",
            )


def _text_key(event: Any) -> str:
    if isinstance(event, yaml.MappingStartEvent) and event.flow_style:
        raise TreeError("A key begins with a brace", 'Put quotes around templates: "{{ .title }}".')
    if not isinstance(event, yaml.ScalarEvent) or event.tag is not None or event.anchor is not None:
        raise TreeError("A key is not plain text", "Use text without tag, anchor or alias as the key.")
    value: str = event.value
    if not event.implicit[0]:
        return check_text(value)
    if value == "<<":
        raise TreeError("Merge keys are not supported", "Write the keys out in full.")
    if not isinstance(_resolve(value), str):
        raise TreeError(f"The key {shorten(value) or '(empty)'} is not text", "Put quotes around the key.")
    return value


def _resolve(text: str) -> Any:
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _NOT_JSON.match(text):
        raise TreeError(f"{text} is not JSON", "Use a finite number, or put quotes around it.")
    for matches, convert in _CONVERSIONS:
        if matches(text):
            return convert(text)
    return check_text(text)
