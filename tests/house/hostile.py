"""Times each regular expression of some packages on hostile input; a program, as one may take for ever.

The input is what expressions are known to stumble over: repeats of what they are made of, before something
that does not match. Time is the processor's own, so a busy machine changes nothing.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import json
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import regex

ROOT: Final = Path(__file__).resolve().parents[2]
_FUNCTIONS: Final = frozenset(
    ("compile", "search", "match", "fullmatch", "sub", "subn", "finditer", "findall", "split")
)
_AT_START: Final = ("match", "fullmatch")
_SHORT: Final = 600
_QUICK: Final = 0.0003
"""Seconds for a short text: what takes less is not looked at again."""
_FLOOR: Final = 0.0012
_CHECKED: Final = (4_000, 16_000)
_GROWTH: Final = 9
"""Linear is 4, quadratic 16."""
_TIMES: Final = 8
_LIMIT: Final = 1.0
_COMMON: Final = (" ", "a", "A", "1", "\n")
_SCRIPTS: Final = {
    "Han": "中",
    "Hiragana": "の",
    "Katakana": "カ",
    "Hangul": "한",
    "Thai": "ก",
    "M": "\u0301",
}
_MOST_CHARS: Final = 12
_MOST_RUNS: Final = 6
_UNKNOWN: Final = (NameError, AttributeError, TypeError, LookupError, ValueError, re.error, regex.error)
_UNBOUNDED: Final = re.compile(r"[*+]|,\}")
_ENDING: Final = "\x00"


class _Sample(str):
    """What stands for a value that only a function knows, its attributes and what it returns."""

    def __getattr__(self, name: str) -> _Sample:
        return self

    def __call__(self, *_: object, **__: object) -> _Sample:
        return self


class _Samples(dict[str, Any]):
    """The names of a module, and a sample for every other one."""

    def __missing__(self, name: str) -> Any:
        if hasattr(builtins, name):
            raise KeyError(name)
        return _Sample("a")


class Expression(NamedTuple):
    """Where an expression stands, and how it is used."""

    place: str
    compiled: Any
    methods: frozenset[str]


def expressions(folders: Sequence[str]) -> Iterator[Expression]:
    """Those in these folders; of what only a function knows, an `a` stands for each text."""
    trees = {path: ast.parse(path.read_text()) for folder in folders for path in _files(ROOT / folder)}
    for path, tree in trees.items():
        used = _uses(tree)
        calls = [node for node in ast.walk(tree) if _is_expression(node)]
        if not calls:
            continue
        names = _names(tree)
        module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
        known = {**vars(module), "re": re, "regex": regex}
        for call in calls:
            compiled = _evaluated(call, known)
            if compiled is not None:
                function = call.func.attr
                methods = used.get(names.get(id(call), ""), ()) if function == "compile" else (function,)
                place = f"{path.relative_to(ROOT)}:{call.lineno}"
                yield Expression(place, compiled, frozenset(methods))


def _files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def _is_expression(node: ast.AST) -> Any:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id in ("re", "regex")
        and node.func.attr in _FUNCTIONS
        and node.args
    )


def _names(tree: ast.Module) -> dict[int, str]:
    found = dict[int, str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found[id(node.value)] = node.targets[0].id
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[id(node.value)] = node.target.id
    return found


def _uses(tree: ast.Module) -> dict[str, set[str]]:
    found = dict[str, set[str]]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found.setdefault(node.value.id, set()).add(node.attr)
    return found


def _evaluated(call: Any, known: Mapping[str, Any]) -> Any:
    """The compiled expression; None if it can't be made without running the function around it."""
    flags = [*call.args[1:]] if call.func.attr == "compile" else []
    flags += [keyword.value for keyword in call.keywords if keyword.arg == "flags"]
    with suppress(*_UNKNOWN):
        names = _Samples(known)
        values = [eval(compile(ast.Expression(one), "", "eval"), {}, names) for one in (call.args[0], *flags)]
        if any(isinstance(one, _Sample) for one in values):
            return None
        return known[call.func.value.id].compile(*values)
    return None


def hostile(source: str) -> Iterator[tuple[str, str]]:
    """What texts begin with, and what they then repeat, for the source of an expression."""
    chars, runs = _parts(source)
    yield from (("", run + more) for run in runs for more in ("", " ", "1", "a"))
    yield from (("", char) for char in chars)
    for one in chars:
        for other in chars:
            if one != other:
                yield "", one + other
                yield one, other
    yield from ((run, char) for run in runs[:2] for char in chars)


def _parts(source: str) -> tuple[list[str], list[str]]:
    """Characters that an expression speaks of, common ones first, and runs of several in a row."""
    chars, runs, run = dict.fromkeys(_COMMON), dict[str, None](), ""
    letters, within = list[str](), False  # within a set of characters
    for found in re.finditer(r"\\[pP]\{(\w+)\}|\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})|\\?(.)", source, re.S):
        script, *codes, char = found.groups()
        if script:
            char, literal = _SCRIPTS.get(script, "a"), False
        elif code := next(filter(None, codes), None):
            char, literal = chr(int(code, 16)), False
        elif found[0].startswith("\\") and char.isalnum():
            char, literal = {"s": " ", "n": "\n", "t": "\t", "d": "1", "S": "a"}.get(char, "a"), False
        else:
            is_escaped = found[0].startswith("\\")
            within = char != "]" if within and not is_escaped else within or found[0] == "["
            literal = not within and (is_escaped or char not in "()[]{}|?*+^$.")
        if char.isascii() and char.isalpha():
            letters.append(char)
        else:
            chars[char] = None
        run = run + char if literal else ""
        if len(run) > 1:
            runs.pop(run[:-1], None)
            runs[run] = None
    chars |= dict.fromkeys(letters)
    return list(chars)[:_MOST_CHARS], list(runs)[:_MOST_RUNS]


class _OutOfTime(Exception):
    pass


def stop(*_: object) -> None:
    """End the expression under way, when its time is up."""
    raise _OutOfTime


def seconds(
    compiled: Any,
    method: str,
    before: str,
    repeated: str,
    size: int,
    clock: Callable[[], float] = time.process_time,
) -> float:
    text: Any = before + (repeated * (size // len(repeated) + 1))[:size] + _ENDING
    if isinstance(compiled.pattern, bytes):
        text = text.encode("latin-1", "replace")
    began = clock()
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, _LIMIT)
        try:
            if method in _AT_START:
                getattr(compiled, method)(text)
            else:
                for _ in compiled.finditer(text):
                    pass
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    except _OutOfTime:
        return float("inf")
    return clock() - began


def slow_on(compiled: Any, methods: frozenset[str]) -> tuple[str, str] | None:
    """What it takes more than linear time on, if anything."""
    source = compiled.pattern
    source = source.decode("latin-1") if isinstance(source, bytes) else source
    if not _UNBOUNDED.search(source):
        return None
    kinds = [one for one in _AT_START if one in methods]
    if not kinds or methods - set(_AT_START):
        kinds.append("search")
    for before, repeated in hostile(source):
        for method in kinds:
            if _grows(compiled, method, before, repeated):
                return before, repeated
    return None


def _grows(compiled: Any, method: str, before: str, repeated: str) -> bool:
    # The processor's own time may come in steps of 4 ms.
    if seconds(compiled, method, before, repeated, _SHORT, time.perf_counter) < _QUICK:
        return False
    for _ in range(_TIMES):
        short = seconds(compiled, method, before, repeated, _CHECKED[0])
        long = short if short == float("inf") else seconds(compiled, method, before, repeated, _CHECKED[1])
        if long == float("inf"):
            return True
        if long <= _GROWTH * max(short, _FLOOR):
            return False
    return True


def main(folders: Sequence[str]) -> None:
    """Print the slow ones: where, and what on; and how many were tried."""
    signal.signal(signal.SIGVTALRM, stop)
    slow, tried = dict[str, tuple[str, str]](), 0
    for one in expressions(folders):
        tried += 1
        if found := slow_on(one.compiled, one.methods):
            slow[one.place] = found
    sys.stdout.write(json.dumps({"tried": tried, "slow": slow}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
