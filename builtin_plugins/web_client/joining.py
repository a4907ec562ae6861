"""Bundles the modules of the first views at the start, into three requests instead of almost fifty.

The sources stay plain modules. An entry and all its imports become one module, with each in a separate
function that others get it from. Statements are found by their form: an import or export begins a line and
names what it takes, or is minified as in npm packages.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Final

# Each begins with its keyword, which is fast to find; every text begins with a line break.
_NAMES: Final = r"\{(?P<names>[^}]*)\}"
_FROM: Final = r'\s*from\s*"(?P<source>\.[^"]*)";?'
_IMPORT: Final = re.compile(rf"import(?<=[;}}\n]import)\s*(?:(?P<whole>\w+)|{_NAMES}){_FROM}")
_PASSED_ON: Final = re.compile(rf"export(?<=[;}}\n]export)\s*{_NAMES}{_FROM}")
_LISTED: Final = re.compile(rf"export(?<=[;}}\n]export)\s*{_NAMES};?")
_DECLARED: Final = re.compile(r"export(?<=\nexport) (?=(?:async )?(?:function\*?|const|class) (?P<name>\w+))")
_DEFAULT: Final = re.compile(r"export(?<=[;}\n]export) default function\s*(?P<name>\w*)")
_FORMS: Final = (_IMPORT, _PASSED_ON, _LISTED, _DECLARED, _DEFAULT)
# Any such statement, but not `import(…)`, `import.meta` or a property's name.
_STATEMENT: Final = re.compile(r"port(?<=[;}\n](?:im|ex)port)(?![\w$]|\s*[(.:,])")
_DYNAMIC: Final = re.compile(r'import\("(?P<source>\.[^"]*)"\)')


def join(modules: Mapping[str, str], entries: Sequence[str]) -> dict[str, str]:
    """The modules by path, with each entry and its imports bundled in the entry's place.

    `modules` are all of them, by paths below one folder. What an earlier entry contains is not bundled again.
    An entry exports its own exports, and its parts. Raises ValueError for modules that import each other, and
    for an import or export in a form that isn't known here.
    """
    modules = {name: f"\n{text}" for name, text in modules.items()}
    for name, text in modules.items():
        _check_forms(name, text)
    places: dict[str, tuple[str, str]] = {}
    groups = {}
    for entry in entries:
        groups[entry] = [name for name in _ordered(modules, entry) if name not in places]
        places |= {name: (entry, f"module_{len(places) + at}") for at, name in enumerate(groups[entry])}
    joined = {
        name: _imports(text, name, places, name) for name, text in modules.items() if name not in places
    }
    for entry, names in groups.items():
        parts = [_part(modules[name], name, places, entry) for name in names]
        exports = ", ".join(places[name][1] for name in names)
        lines = [*_borrowed(modules, names, places, entry), *(text for text, _ in parts)]
        joined[entry] = "\n".join([*lines, f"export {{ {exports} }};", *_own(places[entry][1], parts[-1][1])])
    return joined


def _check_forms(name: str, text: str) -> None:
    """Refuse unknown forms: they would be syntax errors inside a function, or request missing files."""
    for statement in _STATEMENT.finditer(text):
        begin = statement.start() - 2
        if not any(form.match(text, begin) for form in _FORMS):
            line = text[begin:].partition("\n")[0]
            raise ValueError(f"{name} has an import or export that can't be joined: {line[:80]}")


def _own(part: str, exports: Sequence[tuple[str, str]]) -> list[str]:
    """An entry's exports, its default last."""
    named = [name for name, _ in exports if name != "default"]
    whole = [f"export default {part}.default;"] if len(named) < len(exports) else []
    return [*([f"export const {{ {', '.join(named)} }} = {part};"] if named else []), *whole, ""]


def _ordered(modules: Mapping[str, str], entry: str) -> list[str]:
    """The entry and all its imports, each after what it needs."""
    done: dict[str, None] = {}
    under_way: set[str] = set()

    def visit(name: str) -> None:
        if name in done:
            return
        if name in under_way:
            raise ValueError(f"{name} imports itself in a circle")
        under_way.add(name)
        for pattern in (_IMPORT, _PASSED_ON):
            for match in pattern.finditer(modules[name]):
                visit(_target(name, match["source"]))
        done[name] = None

    visit(entry)
    return list(done)


def _borrowed(
    modules: Mapping[str, str], names: Sequence[str], places: Mapping[str, tuple[str, str]], entry: str
) -> list[str]:
    """Imports of those parts of earlier entries that this one uses."""
    imports = sorted(
        {
            places[target]
            for name in names
            for pattern in (_IMPORT, _PASSED_ON)
            for match in pattern.finditer(modules[name])
            if places[target := _target(name, match["source"])][0] != entry
        }
    )
    return [f'import {{ {part} }} from "{_relative(entry, where)}";' for where, part in imports]


def _part(
    text: str, name: str, places: Mapping[str, tuple[str, str]], entry: str
) -> tuple[str, list[tuple[str, str]]]:
    """A module as a function that returns its exports; and its exports, as names and what they stand for."""
    exports: list[tuple[str, str]] = []

    def passed_on(match: re.Match[str]) -> str:
        part = places[_target(name, match["source"])][1]
        exports.extend((alias, f"{part}.{own}") for own, alias in _pairs(match["names"]))
        return ""

    def listed(match: re.Match[str]) -> str:
        exports.extend((alias, own) for own, alias in _pairs(match["names"]))
        return ""

    def declared(match: re.Match[str]) -> str:
        exports.append((match["name"], match["name"]))
        return ""

    def by_default(match: re.Match[str]) -> str:
        exports.append(("default", match["name"] or "whole"))
        return f"function {match['name']}" if match["name"] else "const whole = function"

    text = _PASSED_ON.sub(passed_on, _imports(text, name, places, entry))
    text = _DEFAULT.sub(by_default, _LISTED.sub(listed, _DECLARED.sub(declared, text)))
    answer = ", ".join(f"{alias}: {what}" for alias, what in exports)
    return f"const {places[name][1]} = (() => {{\n{text}\nreturn {{ {answer} }};\n}})();", exports


def _imports(text: str, name: str, places: Mapping[str, tuple[str, str]], entry: str) -> str:
    """The module's text as included in `entry`, with its imports by the names used there."""

    def static(match: re.Match[str]) -> str:
        target = _target(name, match["source"])
        if target not in places:
            return match[0]
        where, part = places[target]
        pairs = [("default", match["whole"])] if match["whole"] else _pairs(match["names"])
        names = ", ".join(own if own == alias else f"{own}: {alias}" for own, alias in pairs)
        local = f"const {{ {names} }} = {part};"
        return local if name in places else f'import {{ {part} }} from "{_relative(name, where)}"; {local}'

    def dynamic(match: re.Match[str]) -> str:
        return f'import("{_relative(entry, _target(name, match["source"]))}")'

    return _DYNAMIC.sub(dynamic, _IMPORT.sub(static, text))


def _pairs(names: str) -> list[tuple[str, str]]:
    """`a, b as c` as [("a", "a"), ("b", "c")]."""
    parts = [name.split(" as ") for name in names.split(",") if name.strip()]
    return [(part[0].strip(), part[-1].strip()) for part in parts]


def _target(name: str, source: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), source))


def _relative(name: str, target: str) -> str:
    path = posixpath.relpath(target, posixpath.dirname(name) or ".")
    return path if path.startswith(".") else f"./{path}"
