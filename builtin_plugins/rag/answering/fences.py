"""Code between fences in Markdown (CommonMark 0.31.2, section 4.5): neither prose nor headings.

Longer rows of tildes than three are rules, as below titles in reStructuredText.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

# However deep it is: in the item of a list, a fence is as deep as the item's text.
_FENCE = re.compile(r"[ \t]*(?P<mark>`{3,}|~{3}(?!~))(?P<info>[^`\n]*)$")


def lines_of(text: str) -> Iterator[tuple[str, bool]]:
    """The lines of a text with their ends, each with whether it is code; fences are blank lines.

    If the last fence closes nothing, a first one that names no language ends code from the passage before.
    """
    lines = text.splitlines(keepends=True)
    if "```" not in text and "~~~" not in text:
        yield from ((line, False) for line in lines)
        return
    kinds, unpaired = _kinds(lines, "")
    if unpaired:
        kinds, _ = _kinds(lines, unpaired)
    for line, is_code in zip(lines, kinds, strict=True):
        yield (" " * len(line), False) if is_code is None else (line, is_code)


def _kinds(lines: Sequence[str], opened: str) -> tuple[list[bool | None], str]:
    """Whether each line is code, None for a fence, where the fence `opened` is open at first; and the mark of
    a first fence that names no language, if one is open at the end.
    """
    kinds: list[bool | None] = []
    first = None
    for line in lines:
        fence = _FENCE.match(line)
        if fence is None or not fence["mark"].startswith(opened):
            kinds.append(bool(opened))
            continue
        kinds.append(None)
        first = first or fence
        opened = "" if opened else fence["mark"]
    return kinds, first["mark"] if opened and first and not first["info"].strip() else ""
