"""Checks that a plugin's answer to a hook has the type in the hook's specification.

Only the outermost type and the items of a list are checked: enough to tell which plugin is wrong before its
answer fails somewhere else. Types are compared by name, because specifications import most of them only for
type checkers.
"""

from __future__ import annotations

import builtins
import inspect
import re
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from typing import Annotated, Any, get_origin

from kernel.hook_types import HookSpec

_TYPE = re.compile(r"([\w.]+)(?:\[(.*)\])?")
_MORE_GENERAL = {"Select": "Executable"}  # a union of queries will do as well


class Misanswered(TypeError):
    """An answer of another type; the text continues after the hook's name."""


class AnswerChecks:
    """Remembers which types fit, so that checking a known type costs only a set lookup."""

    def __init__(self) -> None:
        self._fitting: set[tuple[HookSpec[..., Any], type, frozenset[type] | None]] = set()

    def check(self, spec: HookSpec[..., Any], answer: object) -> None:
        """Raise Misanswered if the answer doesn't fit."""
        items = frozenset(map(type, answer)) if isinstance(answer, list | tuple) else None
        kind = (spec, type(answer), items)
        if kind in self._fitting:
            return
        wrong = _wrong(spec, answer)
        if wrong is not None:
            raise Misanswered(wrong)
        self._fitting.add(kind)


def _wrong(spec: HookSpec[..., Any], answer: object) -> str | None:
    wanted = _without_none(str(inspect.signature(spec.function).return_annotation))
    outer, inner = _parts(wanted)
    if not _is_a(spec, answer, outer):
        return f"returned {_shown(answer)}; return {wanted} or None"
    if outer == "Sequence" and inner and isinstance(answer, list | tuple):
        item, _ = _parts(inner)
        strange = next((one for one in answer if not _is_a(spec, one, item)), None)
        if strange is not None:
            return f"returned a list with {_shown(strange)}; return {wanted} or None"
    return None


def _is_a(spec: HookSpec[..., Any], value: object, name: str) -> bool:
    if name == "Sequence":
        return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
    if name == "Mapping":
        return isinstance(value, Mapping)
    bases = {base.__name__ for base in type(value).__mro__}
    if _MORE_GENERAL.get(name) in bases:
        return True
    wanted = _named(spec, name)
    if isinstance(wanted, str):
        return wanted in bases
    if getattr(wanted, "_is_protocol", False):
        return all(hasattr(value, member) for member in _members(wanted))
    try:
        return isinstance(value, wanted)
    except TypeError:  # isinstance() refuses these: Any, a TypedDict
        return True


def _named(spec: HookSpec[..., Any], name: str) -> type[Any] | str:
    """The class that a name stands for, or just the name if the kernel imports it only for type checkers.

    Returns `object` if anything may fit.
    """
    found: Any = sys.modules.get(spec.module)
    for part in name.split("."):
        found = getattr(found, part, None)
    found = getattr(builtins, name, None) if found is None else found
    if found is None and spec.module.startswith("kernel.") and name != "None":
        return name.rpartition(".")[2]
    if get_origin(found) is AsyncGenerator:
        return AsyncIterator
    is_protocol = getattr(found, "_is_protocol", False)
    if not isinstance(found, type) or found in (float, Annotated):
        return object
    if inspect.isabstract(found) and not is_protocol:
        return object
    return found


def _members(protocol: type[Any]) -> set[str]:
    """The names of a protocol's members."""
    kinds = [kind for kind in protocol.__mro__ if getattr(kind, "_is_protocol", False)]
    names = {name for kind in kinds for name in (*vars(kind), *inspect.get_annotations(kind))}
    return {name for name in names if not name.startswith("_")}


def _without_none(annotation: str) -> str:
    return annotation.removesuffix(" | None").removeprefix("'").removesuffix("'")


def _parts(annotation: str) -> tuple[str, str]:
    """`Sequence[contracts.Thing]` → `Sequence`, `contracts.Thing`."""
    found = _TYPE.fullmatch(annotation)
    if found is None:  # a union, or no annotation: anything may fit
        return "object", ""
    return found[1], found[2] or ""


def _shown(value: object) -> str:
    kind = type(value).__name__
    return f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}"
