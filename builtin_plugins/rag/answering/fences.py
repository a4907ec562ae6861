"""Code between fences in Markdown (CommonMark 0.31.2, section 4.5): neither prose nor headings."""

from __future__ import annotations

import re
from collections.abc import Iterator

_FENCE = re.compile(r" {0,3}(?:`{3,}|~{3,})(?P<info>[^`\n]*)$")


def lines_of(text: str) -> Iterator[tuple[str, bool]]:
    """The lines of a text with their ends, each with whether it is code; fences are blank lines.

    Of an odd number of fences, a first one that names no language ends code from the passage before.
    """
    lines = text.splitlines(keepends=True)
    if "```" not in text and "~~~" not in text:
        yield from ((line, False) for line in lines)
        return
    found = {at: fence for at, line in enumerate(lines) if (fence := _FENCE.match(line))}
    inside = len(found) % 2 == 1 and not next(iter(found.values()))["info"].strip()
    for at, line in enumerate(lines):
        if at in found:
            inside = not inside
            yield " " * len(line), False
        else:
            yield line, inside
