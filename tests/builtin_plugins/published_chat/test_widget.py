"""The widget in Chromium, on a page of another origin whose policy forbids inline styles and scripts."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from kernel.testing import Running, platforms
from tests.builtin_plugins.published_chat.browser_support import ShopSite, Watched, shop_site
from tests.builtin_plugins.published_chat.page_support import HOTEL, PLUGINS, ROOMY, Shop, open_shop, publish
from tests.fakes.browser import ARABIC, FROM_THE_RIGHT, launched

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    """A platform that trusts no origin of its own accord: the chat alone decides."""
    env = {**ROOMY, "CORS_ALLOWED_ORIGINS": "https://console.example.org"}
    async with platforms(tmp_path_factory.mktemp("widget")) as start:
        yield await start(*PLUGINS, env=env)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(running: Running) -> AsyncIterator[ShopSite]:
    async with shop_site(running.url) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shop(running: Running, site: ShopSite) -> Shop:
    made = await open_shop(running, allowed_origins=site.origin)
    site.slug = made.slug
    return made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with launched() as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def page(browser: Browser, site: ShopSite, shop: Shop) -> AsyncIterator[Watched]:
    """The shop's page, open in its own profile."""
    site.slug, site.attributes = shop.slug, ""
    context = await browser.new_context(viewport={"width": 900, "height": 720})
    watched = Watched(await context.new_page())
    await watched.page.goto(site.origin)
    yield watched
    await context.close()


async def shoot(watched: Watched, name: str, tmp_path: Path) -> None:
    folder = Path(os.environ.get("PLATFORM_TEST_SHOTS") or tmp_path)
    shot = await watched.page.screenshot(path=folder / f"{name}.png")
    assert len(shot) > 5000


async def test_question_and_answer(page: Watched, site: ShopSite, running: Running, tmp_path: Path) -> None:
    """Asked by keyboard, streamed, cited; nobody but the page and the API is called, nothing is blocked."""
    await page.open()
    await page.ask(HOTEL)
    await expect(page.page.get_by_role("log")).to_contain_text("130 EUR")
    await page.page.get_by_text("Sources (").click()
    await expect(page.page.get_by_text("[1] handbook.md")).to_be_visible()
    await shoot(page, "answer", tmp_path)
    assert all(url.startswith((site.origin, running.url)) for url in page.called), page.called
    assert [one for one in page.complaints if "favicon" not in one and "404" not in one] == []


async def test_nothing_serious_for_axe(page: Watched, site: ShopSite, tmp_path: Path) -> None:
    for theme in ("light", "dark"):
        site.attributes = f'data-theme="{theme}"'
        await page.page.goto(site.origin)
        assert await page.serious() == [], theme
        await page.open()
        await page.ask(HOTEL)
        await page.page.get_by_role("button", name="This answer helped").last.click()
        await page.page.get_by_text("Sources (").last.click()
        assert await page.serious() == [], theme
        await shoot(page, f"axe-{theme}", tmp_path)
        await page.page.evaluate("sessionStorage.clear()")


async def test_on_a_phone(page: Watched, tmp_path: Path) -> None:
    """Everything is inside a screen of 375 by 667, the page scrolls one way alone, buttons take a finger."""
    await page.page.set_viewport_size({"width": 375, "height": 667})
    await page.open()
    await page.ask(HOTEL)
    await expect(page.page.get_by_role("log")).to_contain_text("130 EUR")
    dialog = page.page.get_by_role("dialog")
    for part in (dialog, page.page.get_by_label("Your question"), dialog.get_by_role("button").first):
        box = await part.bounding_box()
        assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= 375, box
        assert box["y"] >= 0 and box["y"] + box["height"] <= 667 and box["height"] >= 24, box
    assert await page.page.evaluate("document.documentElement.scrollWidth") <= 375
    await shoot(page, "phone", tmp_path)


async def test_a_long_name_on_a_phone(page: Watched, site: ShopSite) -> None:
    site.attributes = f'data-title="{"Customer service " * 12}"'
    await page.page.set_viewport_size({"width": 360, "height": 640})
    await page.page.goto(site.origin)
    await page.open()
    whole = await page.page.get_by_role("dialog").bounding_box()
    said = await page.page.get_by_role("log").bounding_box()
    assert whole is not None and said is not None and said["height"] > whole["height"] / 2


async def test_a_question_from_right_to_left(page: Watched) -> None:
    await page.open()
    await page.ask(ARABIC)
    assert await page.page.locator(".mine").evaluate(FROM_THE_RIGHT)


async def test_keyboard_alone(page: Watched) -> None:
    await expect(page.page.get_by_role("button", name="Open chat")).to_be_visible()
    await page.page.keyboard.press("Tab")
    await page.page.keyboard.press("Enter")
    await expect(page.page.get_by_label("Your question")).to_be_focused()
    await page.page.keyboard.type(HOTEL)
    await page.page.keyboard.press("Enter")
    await expect(page.page.get_by_role("log")).to_contain_text("130 EUR")
    await expect(page.page.get_by_label("Your question")).to_be_focused()
    await page.page.keyboard.press("Escape")
    await expect(page.page.get_by_role("button", name="Open chat")).to_be_focused()
    await expect(page.page.get_by_role("dialog")).to_be_hidden()


async def test_the_session_outlives_a_reload(page: Watched, shop: Shop) -> None:
    await page.open()
    await page.ask(HOTEL)
    await expect(page.page.get_by_role("log")).to_contain_text("130 EUR")
    await page.answered()
    before = (await shop.owner.get(shop.path + "/sessions")).json()["total"]
    await page.page.reload()
    await expect(page.page.get_by_role("dialog")).to_be_visible()
    await expect(page.page.get_by_role("log")).to_contain_text("130 EUR")
    await page.ask("Who pays for breakfast?")
    await expect(page.page.get_by_role("log")).to_contain_text("company")
    assert (await shop.owner.get(shop.path + "/sessions")).json()["total"] == before


async def test_a_question_sent_while_an_answer_arrives(page: Watched) -> None:
    gate = await page.hold_answers()
    await page.open()
    await page.ask(HOTEL)
    await page.ask("Who pays for breakfast?")
    await expect(page.page.get_by_role("status")).to_contain_text("when this answer is complete")
    await expect(page.page.get_by_label("Your question")).to_have_value("Who pays for breakfast?")
    gate.set()
    await expect(page.page.get_by_role("log")).to_contain_text("company")
    await expect(page.page.get_by_label("Your question")).to_have_value("")


async def test_a_question_that_is_changed_meanwhile_is_not_sent(page: Watched) -> None:
    gate = await page.hold_answers()
    await page.open()
    await page.ask(HOTEL)
    await page.ask("Who pays")
    await page.page.keyboard.type(" for breakfast?")
    gate.set()
    await page.answered()
    await expect(page.page.get_by_label("Your question")).to_have_value("Who pays for breakfast?")


async def test_thumbs_and_a_comment(page: Watched, shop: Shop, tmp_path: Path) -> None:
    await page.open()
    await page.ask(HOTEL)
    await page.page.get_by_role("button", name="This answer did not help").click()
    await page.page.get_by_label("What was good, or what was missing?").fill("In which city?")
    await page.page.get_by_role("button", name="Send comment").click()
    await expect(page.page.get_by_text("Thank you for your feedback.")).to_be_visible()
    await shoot(page, "feedback", tmp_path)
    items = (await shop.owner.get(shop.path + "/feedback")).json()["items"]
    assert (items[0]["rating"], items[0]["comment"]) == ("down", "In which city?")


async def test_limits_in_words(page: Watched, site: ShopSite, shop: Shop, tmp_path: Path) -> None:
    """The daily limit is shown, and the question stays in the field."""
    made = await publish(shop.owner, shop.pipeline, allowed_origins=site.origin, daily_questions=1)
    site.slug = made["slug"]
    await page.page.goto(site.origin)
    await page.open()
    await page.ask(HOTEL)
    await expect(page.page.get_by_role("log")).to_contain_text("130 EUR")
    await page.ask(HOTEL)
    await expect(page.page.get_by_role("alert")).to_contain_text("its limit of questions for today")
    await expect(page.page.get_by_label("Your question")).to_have_value(HOTEL)
    await shoot(page, "limit", tmp_path)


async def test_a_page_that_is_not_allowed(page: Watched, site: ShopSite, shop: Shop) -> None:
    made = await publish(shop.owner, shop.pipeline, allowed_origins="https://elsewhere.example")
    site.slug = made["slug"]
    await page.page.goto(site.origin)
    await page.open()
    await expect(page.page.get_by_role("log")).to_contain_text("is not enabled for this site")


async def test_attributes(page: Watched, site: ShopSite, tmp_path: Path) -> None:
    """Colours, place, title and texts follow the page's attributes."""
    site.attributes = (
        'data-accent="rgb(120, 10, 90)" data-position="left" data-title="Frag uns" data-text-open="Öffnen"'
    )
    await page.page.goto(site.origin)
    button = page.page.get_by_role("button", name="Öffnen")
    await button.click()
    await expect(page.page.get_by_role("heading", name="Frag uns")).to_be_visible()
    box = await page.page.get_by_role("dialog").bounding_box()
    assert box is not None and box["x"] < 40
    colour = await page.page.get_by_role("button", name="Send").evaluate(
        "one => getComputedStyle(one).backgroundColor"
    )
    assert colour == "rgb(120, 10, 90)"
    await shoot(page, "attributes", tmp_path)
