"""Debian's Chromium, which calls nobody."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, async_playwright, expect

from kernel.testing import missing

PATIENCE = 40_000  # ms, on a busy machine

ARABIC = "الفندق في أوسلو غال."
# Whether the full stop stands to the left of the first letter.
FROM_THE_RIGHT = """(box) => {
  const walker = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
  const at = (node, index) => {
    const range = document.createRange();
    range.setStart(node, index);
    range.setEnd(node, index + 1);
    return range.getBoundingClientRect().left;
  };
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const stop = node.data.indexOf(".");
    if (stop > 0) return at(node, stop) < at(node, node.data.search(/\\S/));
  }
  return null;
}"""

# The first has no window to draw: it takes a third less processor time.
_PROGRAMS = ("chromium-headless-shell", "chromium")
_ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"),
    *("--disable-component-update", "--disable-sync"),
)


@asynccontextmanager
async def launched(*arguments: str) -> AsyncIterator[Browser]:
    """A browser, with these arguments too. Without one the test is skipped, or fails (CI)."""
    program = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if program is None:
        missing("Chromium is missing; apt-get install chromium-headless-shell")
    expect.set_options(timeout=PATIENCE)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=[*_ARGUMENTS, *arguments])
        try:
            yield browser
        finally:
            await browser.close()
