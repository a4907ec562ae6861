"""JSON and JSON lines: every value becomes a line `path: value`, every record a block."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from builtin_plugins.documents.blocks import Block, UnparsableDocument
from builtin_plugins.documents.text.encoding import open_text, repair

MAX_JSON_CHARS: Final = 32 * 1024 * 1024
_LINES_PER_BLOCK: Final = 200
_SPACE: Final = re.compile(r"[ \t\r\n]*+")


def parse(path: Path) -> Iterator[Block]:
    """Yield a block per record: an item of the top list, a container in the top object, the scalars between.

    Numbers keep their spelling. Raises `UnparsableDocument`: `too_large` beyond 32 million characters (a JSON
    text must fit in memory), `too_deep` beyond about a thousand levels, `corrupt` when it is not JSON.
    """
    yield from blocks_in(load(path))


def load(path: Path) -> Any:
    """Return the value in a file, its numbers as strings. Raises what `parse` raises."""
    with open_text(path) as file:
        text = repair(file.read(MAX_JSON_CHARS + 1))
    if len(text) > MAX_JSON_CHARS:
        raise UnparsableDocument("too_large", "json: more than 32 million characters")
    return _load(text)


def parse_lines(path: Path) -> Iterator[Block]:
    """Yield a block per line of JSON lines; memory is bounded by the longest line, 32 million characters.

    After a line that isn't a complete record, values may take several lines or share one; the rest of the
    file is then held in memory. Raises what `parse` raises.
    """
    with open_text(path) as file:
        while line := file.readline(MAX_JSON_CHARS):
            if len(line) == MAX_JSON_CHARS:
                raise UnparsableDocument("too_large", "json: line of more than 32 million characters")
            if not line.strip():
                continue
            try:
                values: Iterable[Any] = [_load(repair(line))]
            except UnparsableDocument as error:
                if error.code != "corrupt":
                    raise
                rest = line + file.read(MAX_JSON_CHARS + 1 - len(line))
                values = _values(repair(rest))
            for value in values:
                yield from _portions(_flatten("", value))


def _values(text: str) -> Iterator[Any]:
    """The values in a text, one after the other."""
    if len(text) > MAX_JSON_CHARS:
        raise UnparsableDocument("too_large", "json: more than 32 million characters")
    decoder = json.JSONDecoder(parse_int=str, parse_float=str)
    place = _after_space(text, 0)
    while place < len(text):
        value, place = _loaded(decoder.raw_decode, text, place)
        yield value
        place = _after_space(text, place)


def _after_space(text: str, place: int) -> int:
    space = _SPACE.match(text, place)
    return space.end() if space else place


def _load(text: str) -> Any:
    return _loaded(partial(json.loads, parse_int=str, parse_float=str), text)


def _loaded(load: Callable[..., Any], *arguments: object) -> Any:
    try:
        return load(*arguments)
    except RecursionError as error:
        raise UnparsableDocument("too_deep", "json: nested too deeply") from error
    except ValueError as error:
        raise UnparsableDocument("corrupt", f"json: {error}") from error


def blocks_in(value: Any) -> Iterator[Block]:
    """Yield what `parse` yields, of one value."""
    scalars: list[str] = []
    for path, item in _children("", value) if isinstance(value, (dict, list)) else [("", value)]:
        if isinstance(item, (dict, list)):
            yield from _portions(iter(scalars))
            scalars = []
            yield from _portions(_flatten(path, item))
        else:
            scalars.append(_line(path, item))
    yield from _portions(iter(scalars))


def _portions(lines: Iterator[str]) -> Iterator[Block]:
    portion: list[str] = []
    for line in lines:
        portion.append(line)
        if len(portion) == _LINES_PER_BLOCK:
            yield Block("\n".join(portion))
            portion = []
    if portion:
        yield Block("\n".join(portion))


def _flatten(path: str, value: Any) -> Iterator[str]:
    """Yield the lines below a value in document order, without recursion."""
    stack = [iter([(path, value)])]
    while stack:
        path, item = next(stack[-1], ("", stack))
        if item is stack:
            stack.pop()
        elif isinstance(item, (dict, list)):
            stack.append(_children(path, item))
        else:
            yield _line(path, item)


def _children(path: str, value: dict[str, Any] | list[Any]) -> Iterator[tuple[str, Any]]:
    if isinstance(value, list):
        return ((f"{path}[{index}]", item) for index, item in enumerate(value))
    return ((f"{path}.{key}" if path else key, item) for key, item in value.items())


def _line(path: str, value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return f"{path}: {text}" if path else text
