"""People who hear a page, go through it by keys, or see it in colours of their own."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, expect

from kernel.testing import Running
from tests.builtin_plugins.web_client.visits import SETTLED, Visitor, knowledge_base

pytestmark = pytest.mark.asyncio(loop_scope="session")

# Whether a background tells this element from that one.
TELLS = """([one, other]) => getComputedStyle(document.querySelector(one)).backgroundColor !==
  getComputedStyle(document.querySelector(other)).backgroundColor"""
# Whether a text's colour differs much from what is right behind it.
IS_LEGIBLE = """(one) => {
  const { color, backgroundColor: behind } = getComputedStyle(one);
  const [text, ground] = [color, behind].map((name) => name.match(/[\\d.]+/g).map(Number));
  return ground[3] === 0 || Math.abs(text[0] - ground[0]) > 100;
}"""
# Whether the chosen command can be seen.
IN_LIST = """() => {
  const list = document.querySelector("[role=listbox]");
  const chosen = list.querySelector("[aria-selected=true]");
  const [box, all] = [chosen, list].map((one) => one.getBoundingClientRect());
  return box.top >= all.top - 1 && box.bottom <= all.bottom + 1;
}"""


async def test_an_answer_is_told(site: Running, visitor: Visitor) -> None:
    """Whoever doesn't see the page hears that the answer has come; one that was opened again isn't news."""
    ana = await site.user()
    await knowledge_base(ana)
    page = await visitor.arrive(ana)
    told = page.get_by_role("status").filter(has_text="The answer is ready.")
    await visitor.ask("How much may a hotel in Oslo cost per night?")
    await expect(told).to_have_count(1)
    await page.reload()
    await expect(page.locator(".turn")).to_contain_text("185 euro")
    await expect(told).to_have_count(0)


async def test_another_page_is_told(site: Running, visitor: Visitor) -> None:
    """Where the link that was followed is gone, its page has the focus; the page's title is said."""
    ana = await site.user()
    await knowledge_base(ana)
    page = await visitor.arrive(ana, "/documents")
    await page.get_by_role("link", name="Handbook Private").press("Enter")
    await expect(page.locator("#main")).to_be_focused()
    await page.get_by_role("link", name="handbook.md").press("Enter")
    await expect(page.locator("#main")).to_be_focused()
    await expect(page.get_by_role("status").filter(has_text="Document · Platform")).to_have_count(1)


async def test_the_palette_by_keys(site: Running, visitor: Visitor) -> None:
    """The chosen command is in sight however small the window, and Escape leads back to where one typed."""
    ana = await site.user()
    await knowledge_base(ana)
    page = await visitor.arrive(ana)
    await page.set_viewport_size({"width": 640, "height": 360})
    await page.get_by_label("Your question").focus()
    await page.keyboard.press("Control+k")
    await page.locator("#palette-9").wait_for()
    for _ in range(9):
        await page.keyboard.press("ArrowDown")
    await expect(page.locator("#palette-9")).to_have_attribute("aria-selected", "true")
    await page.evaluate(SETTLED)
    assert await page.evaluate(IN_LIST)
    await page.keyboard.press("Escape")
    await expect(page.get_by_label("Your question")).to_be_focused()


# An input method's Enter, which takes its suggestion; Safari only tells it by the old code.
TAKEN = """(box) => {
  for (const how of [{ isComposing: true }, { keyCode: 229 }]) {
    const init = { key: "Enter", bubbles: true, cancelable: true, ...how };
    box.dispatchEvent(new KeyboardEvent("keydown", init));
  }
}"""


async def test_enter_of_an_input_method(site: Running, visitor: Visitor) -> None:
    """Who writes Chinese or Japanese takes a suggestion with Enter: nothing is sent or chosen."""
    ana = await site.user()
    await knowledge_base(ana, "北欧旅行")
    page = await visitor.arrive(ana)
    box = page.get_by_label("Your question")
    await box.fill("北欧")
    await box.evaluate(TAKEN)
    await expect(page.locator(".turn")).to_have_count(0)
    await expect(box).to_have_value("北欧")
    await page.keyboard.press("Control+k")
    find = page.get_by_role("combobox", name="Find anything")
    await find.fill("北欧")
    await expect(page.get_by_role("listbox").get_by_role("option", name="北欧旅行")).to_be_visible()
    await find.evaluate(TAKEN)
    await expect(find).to_be_visible()
    await page.keyboard.press("Enter")
    await expect(find).to_have_count(0)


@pytest.mark.long
async def test_colours_of_one_s_own(site: Running, browser: Browser) -> None:
    """Where the system's colours replace the page's, what is chosen and how far work is can still be seen."""
    ana = await site.user(role="admin")
    base = await knowledge_base(ana)
    context = await browser.new_context(forced_colors="active", locale="en-GB", reduced_motion="reduce")
    visitor = Visitor(site, context)
    page = await visitor.arrive(ana, f"/documents/{base['id']}?state=failed")
    await page.get_by_text("No document matches.").wait_for()
    assert await page.evaluate(TELLS, [".filters .pressed", ".filters button:not(.pressed)"])
    assert await page.evaluate(TELLS, [".sidebar a[aria-current]", ".sidebar nav a:not([aria-current])"])
    await page.keyboard.press("Control+k")
    await page.locator("#palette-1").wait_for()
    assert await page.evaluate(
        TELLS, ["[role=option][aria-selected=true]", "[role=option][aria-selected=false]"]
    )
    assert await page.locator("[role=option][aria-selected=true] kbd").evaluate(IS_LEGIBLE)
    await visitor.open()
    await page.get_by_label("Your question").focus()
    assert (
        await page.locator(".composer-inside").evaluate("(box) => getComputedStyle(box).outlineStyle")
        == "solid"
    )
    await visitor.open("/operations")
    await page.get_by_role("link", name="Status", exact=True).wait_for()
    colours = "(one) => getComputedStyle(one).borderBottomColor"
    tabs = page.locator("nav.tabs a")
    assert await tabs.nth(0).evaluate(colours) != await tabs.nth(1).evaluate(colours)
    await context.close()
