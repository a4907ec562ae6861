"""What is missing or wrong in the client's files of texts; run as a program, it lists this by language."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

STATIC: Final = Path(__file__).parents[3] / "builtin_plugins/web_client/static"
FILES: Final = sorted((STATIC / "languages").glob("*.js"))

_STRING: Final = r'"((?:[^"\\]|\\.)+)"'
_DIRECT: Final = re.compile(rf"\bt\(\s*(?:[^()\"]*\?\s*)?{_STRING}(?:\s*:\s*{_STRING})?")
_COUNTED: Final = re.compile(rf"\bplural\([^\"]*?{_STRING},\s*{_STRING}")
_TITLED: Final = re.compile(rf"\btitle: {_STRING}")
_ENTRY: Final = re.compile(rf"  (?:(\w+)|{_STRING}): {_STRING},( // as in English)?")
_PLACE: Final = re.compile(r"\{\w+\}")
_TYPEWRITTEN: Final = re.compile(r"'|\\\"")
_SPACE: Final = "\N{NARROW NO-BREAK SPACE}"
# What a language's own typography forbids, by its code.
_MISSPELT: Final = {
    "fr": re.compile(rf"(?<!{_SPACE})(?:[;?!»]|:(?!//))|«(?!{_SPACE})|'"),
    "es": re.compile(r"^[^¿]*\?|^[^¡]*!|« | »"),
}


def sources() -> list[str]:
    """The client's own modules that show texts."""
    return [path.read_text("utf-8") for path in sorted(STATIC.rglob("*.js")) if _shows_texts(path)]


def known_texts() -> set[str]:
    """English texts that modules name where they show them, and those that any language has."""
    shown = {
        text
        for source in sources()
        for pattern in (_DIRECT, _COUNTED, _TITLED)
        for found in pattern.findall(source)
        for text in ([found] if isinstance(found, str) else found)
        if text
    }
    return shown | {english for path in FILES for english, _, _ in _entries(path)}


def faults(path: Path) -> dict[str, list[str]]:
    """What is wrong with a file, by kind: English texts, or lines that can't be read. Empty if nothing is."""
    entries = list(_entries(path))
    texts = {english: text for english, text, _ in entries}
    shown = "\n".join(sources())
    counted = {one for one, _ in _COUNTED.findall(shown)}
    found = {
        "unreadable": [line for line in _lines(path) if not _ENTRY.fullmatch(line)],
        "missing": sorted(known_texts() - texts.keys()),
        "unused": [one for one in texts if f'"{one}"' not in shown and f"{one}:" not in shown],
        "twice": [one for one, count in Counter(english for english, _, _ in entries).items() if count > 1],
        "other placeholders": [
            one for one, text in texts.items() if _places(text) not in _allowed(one, counted)
        ],
        "still English": [one for one, text, same in entries if (one == text) != same],
        "typography": [one for one, text in texts.items() if _is_misspelt(path.stem, text)],
    }
    return {kind: texts for kind, texts in found.items() if texts}


def _shows_texts(path: Path) -> bool:
    return not {"vendor", "languages"}.intersection(path.relative_to(STATIC).parts)


def _lines(path: Path) -> list[str]:
    """What stands between the braces."""
    _, _, rest = path.read_text("utf-8").partition("export default {\n")
    return rest.removesuffix("};\n").splitlines()


def _entries(path: Path) -> Iterator[tuple[str, str, bool]]:
    """English text, translation, and whether the two are meant to be the same."""
    for line in _lines(path):
        if match := _ENTRY.fullmatch(line):
            name, quoted, text, same = match.groups()
            yield name or quoted, text, same is not None


def _places(text: str) -> Counter[str]:
    return Counter(_PLACE.findall(text))


def _allowed(english: str, counted: set[str]) -> tuple[Counter[str], ...]:
    """Placeholders that a translation may have: a form for one that is used for 0, too, shows the number."""
    places = _places(english)
    return (places, places + Counter(["{n}"])) if english in counted else (places,)


def _is_misspelt(code: str, text: str) -> bool:
    own = _MISSPELT.get(code)
    return _TYPEWRITTEN.search(text) is not None or (own is not None and own.search(text) is not None)


def _report() -> Iterator[str]:
    for path in FILES:
        found = faults(path)
        yield f"{path.stem}: {sum(map(len, found.values()))} to do"
        for kind, texts in found.items():
            yield f"  {kind}"
            yield from (f"    {text}" for text in texts)


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in _report())
