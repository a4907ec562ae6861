"""Every page in both schemes and three sizes: no serious finding of axe, nothing wider than the screen."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.async_api import Browser, Page, ViewportSize

from kernel.testing import Running
from tests.builtin_plugins.web_client.places import OPEN, PAGES, one_of_everything
from tests.builtin_plugins.web_client.visits import SETTLED, Scheme, Visitor
from tests.fakes.npm import npm_folder

pytestmark = pytest.mark.asyncio(loop_scope="session")

SIZES: dict[str, ViewportSize] = {
    "desktop": {"width": 1440, "height": 900},
    "tablet": {"width": 820, "height": 1100},
    "phone": {"width": 360, "height": 740},
}
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
# Where screenshots go, for people to look at; without it none are taken.
SHOTS = os.environ.get("PLATFORM_TEST_SCREENSHOTS")
LOCALE = os.environ.get("PLATFORM_TEST_LOCALE", "en-GB")
FINDINGS = """async (options) => {
  const { violations } = await axe.run(document, options);
  return violations.filter(({ impact }) => ["serious", "critical"].includes(impact)).map(
    ({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html }) => html.slice(0, 160)).join(" | ")}`);
}"""


IN_SIGHT = """() => [...document.querySelectorAll("nav.tabs [aria-current]")].every((tab) => {
  const [box, all] = [tab, tab.parentElement].map((one) => one.getBoundingClientRect());
  return box.left >= all.left - 1 && box.right <= all.right + 1;
})"""
FADING = """() => {
  window.faded = [];
  const note = ({ target, propertyName }) => window.faded.push(`${target.tagName} ${propertyName}`);
  document.addEventListener("transitionrun", note);
}"""


@pytest.fixture(scope="session")
def axe() -> str:
    folder = npm_folder(Path(__file__).parent / "axe", "the tests of accessibility")
    return (folder / "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "pages",
    [pytest.param(OPEN, id="open"), pytest.param(PAGES, id="signed-in", marks=pytest.mark.long)],
)
async def test_every_page(site: Running, browser: Browser, axe: str, pages: dict[str, str]) -> None:
    """axe finds nothing serious on any page, in either scheme; none is wider than a screen of 360 pixels.

    Where tabs don't fit, the current one is in sight.
    One visit of each page serves all schemes and sizes, and the next page is gone to as by a link.
    """
    ids: dict[str, Any] = {}
    if pages is PAGES:
        root, ids = await one_of_everything(site)
    else:
        root = await site.user(role="admin")
    context = await browser.new_context(bypass_csp=True, reduced_motion="reduce", locale=LOCALE)
    visitor = Visitor(site, context)
    page = await (visitor.arrive(root) if pages is PAGES else visitor.open("/login"))
    await page.evaluate(axe)
    found: dict[str, Any] = {}
    wide, hidden = [], []
    for name, path in pages.items():
        await page.set_viewport_size(SIZES["desktop"])
        await visitor.wear("light")
        await visitor.go(path.format(**ids))
        found[name] = await page.evaluate(FINDINGS, {"resultTypes": ["violations"]})
        for size, viewport in SIZES.items():
            await page.set_viewport_size(viewport)
            for scheme in SCHEMES if SHOTS or size == "desktop" else SCHEMES[:1]:
                await visitor.wear(scheme)
                if size == "desktop" and scheme == "dark":
                    found[name] += await page.evaluate(FINDINGS, {"runOnly": ["color-contrast"]})
                await _keep(page, f"{name}-{size}-{scheme}")
            if not await page.evaluate("document.documentElement.scrollWidth <= innerWidth"):
                wide.append(f"{name} at {viewport['width']}")
            if not await page.evaluate(IN_SIGHT):
                hidden.append(f"{name} at {viewport['width']}")
    await context.close()
    assert visitor.problems == []
    assert {name: findings for name, findings in found.items() if findings} == {}
    assert wide == []
    assert hidden == []


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
async def test_another_scheme_is_there_at_once(
    site: Running, browser: Browser, motion: Literal["reduce", "no-preference"]
) -> None:
    """Where the system turns dark, text and ground change in the same frame: none is unreadable meanwhile."""
    context = await browser.new_context(reduced_motion=motion, color_scheme="light")
    visitor = Visitor(site, context)
    page = await visitor.arrive(await site.user(), "/plugins")
    await page.get_by_role("heading", name="rag", exact=True).wait_for()
    await page.evaluate(SETTLED)
    await page.evaluate(FADING)
    await visitor.wear("dark")
    assert await page.evaluate("faded") == []
    await context.close()


async def _keep(page: Page, name: str) -> None:
    if SHOTS:
        await page.screenshot(path=Path(SHOTS) / f"{name}.png")
