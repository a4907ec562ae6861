"""What was typed and not sent: no dialog drops it silently, and a question waits in its conversation."""

from __future__ import annotations

import asyncio

import pytest
from playwright.async_api import Locator, Page, Route, expect

from kernel.testing import Running
from tests.builtin_plugins.web_client.visits import Visitor, knowledge_base, publish

pytestmark = pytest.mark.asyncio(loop_scope="session")

ASKS = "Discard what you entered?"


async def _typed(page: Page) -> Locator:
    form = page.get_by_role("dialog", name="New knowledge base")
    await form.get_by_label("Description").fill("Half a page of careful words")
    return form


@pytest.mark.parametrize("way", ["escape", "cross", "cancel", "beside", "back"])
async def test_a_form_with_words(site: Running, visitor: Visitor, way: str) -> None:
    """However a form is left, one is asked once; what is kept is still there, what is discarded is gone."""
    page = await visitor.arrive(await site.user(), "/documents")
    await page.get_by_role("button", name="New knowledge base").first.click()
    form = await _typed(page)

    async def leave() -> None:
        if way == "escape":
            await page.keyboard.press("Escape")
        elif way == "beside":
            await page.mouse.click(5, 5)
        elif way == "back":
            await page.evaluate("Promise.allSettled(Object.values(navigation.back()))")
        else:
            await form.get_by_role("button", name={"cross": "Close", "cancel": "Cancel"}[way]).click()

    if way == "back":
        await visitor.go("/pipelines")
        await visitor.go("/documents?new=1")
        form = await _typed(page)
        await form.get_by_label("Name", exact=True).click()
    await leave()
    question = page.get_by_role("dialog", name=ASKS)
    await expect(question.get_by_role("button", name="Keep it")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(question).to_have_count(0)
    await expect(form.get_by_label("Description")).to_have_value("Half a page of careful words")
    await form.get_by_label("Name", exact=True).click()
    await leave()
    await question.get_by_role("button", name="Discard").click()
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await expect(page.get_by_role("heading", name="Documents", exact=True)).to_be_visible()


async def test_escape_again_and_again(site: Running, visitor: Visitor) -> None:
    """A browser closes a dialog at the second Escape in a row, whatever the page says: nothing is lost."""
    page = await visitor.arrive(await site.user(), "/documents?new=1")
    form = await _typed(page)
    question = page.get_by_role("dialog", name=ASKS)
    for _ in range(3):
        await page.keyboard.press("Escape")
        await expect(question).to_be_visible()
        await page.keyboard.press("Escape")
        await expect(question).to_have_count(0)
    await expect(form.get_by_label("Description")).to_have_value("Half a page of careful words")


async def test_a_form_without_changes(site: Running, visitor: Visitor) -> None:
    """Nobody is asked where nothing was typed, or where it was taken back."""
    ana = await site.user()
    base = await knowledge_base(ana)
    page = await visitor.arrive(ana, f"/documents/{base['id']}")
    for words in ("", "Something else"):
        await page.get_by_role("button", name="More", exact=True).click()
        await page.get_by_role("menuitem", name="Rename or describe").click()
        form = page.get_by_role("dialog", name="Handbook")
        await form.get_by_role("radio").nth(1).focus()
        if words:
            await form.get_by_label("Name", exact=True).fill(words)
            await form.get_by_label("Name", exact=True).fill("Handbook")
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("dialog")).to_have_count(0)
    await page.get_by_role("button", name="More on handbook.md").click()
    await page.get_by_role("menuitem", name="Delete").click()
    await page.get_by_label("Delete for good").check()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)


async def test_a_session_that_ended_stays_ended(site: Running, visitor: Visitor) -> None:
    """Escape, however often, doesn't take the sign-in away that a page needs to go on."""
    ana = await site.user()
    page = await visitor.sign_in(ana, "/documents")
    await ana.post("/v1/auth/logout")
    await page.evaluate("dispatchEvent(new Event('focus'))")  # lists are loaded again
    again = page.get_by_role("dialog", name="Your session has ended")
    await expect(again).to_be_visible()
    for _ in range(3):
        await page.keyboard.press("Escape")
    await expect(again).to_be_visible()
    await again.get_by_label("Password").fill(ana.password)
    await page.keyboard.press("Enter")
    await expect(again).to_have_count(0)


async def test_a_form_on_a_page(site: Running, visitor: Visitor) -> None:
    """A form outside of a dialog isn't left silently either, by a link or by Back; once saved, it is."""
    ana = await site.user()
    base = await knowledge_base(ana)
    body = {"name": "Handbook", "knowledge_base_ids": [base["id"]]}
    chat = await publish(ana, (await ana.post("/v1/rag/pipeline", json=body)).json()["pipeline_id"])
    page = await visitor.arrive(ana, "/chats")
    await visitor.go(f"/chats/{chat}?tab=looks")
    greeting = page.get_by_label("Greeting")
    question = page.get_by_role("dialog", name=ASKS)
    away = page.get_by_role("link", name="Documents", exact=True)
    await greeting.fill("Welcome aboard")
    await away.click()
    await question.get_by_role("button", name="Keep it").click()
    await expect(greeting).to_have_value("Welcome aboard")
    await greeting.click()
    await page.evaluate("Promise.allSettled(Object.values(navigation.back()))")
    await question.get_by_role("button", name="Keep it").click()
    await expect(greeting).to_have_value("Welcome aboard")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_text("Saved", exact=True)).to_be_visible()
    await greeting.fill("Welcome ashore")
    await greeting.fill("Welcome aboard")
    await away.click()
    await expect(page).to_have_url(f"{site.url}/app/documents")
    await page.go_back()
    await greeting.fill("Goodbye")
    await away.click()
    await question.get_by_role("button", name="Discard").click()
    await expect(page).to_have_url(f"{site.url}/app/documents")
    await expect(page.get_by_role("heading", name="Documents", exact=True)).to_be_visible()
    await page.go_back()
    await expect(greeting).to_have_value("Welcome aboard")


@pytest.mark.long
async def test_without_events_of_navigation(site: Running, visitor: Visitor) -> None:
    """Browsers without the Navigation API ask as well: by a link and by Back, on a page and in a dialog; what
    is kept stays in its place of the history.
    """
    await visitor.context.add_init_script("delete window.navigation; delete Window.prototype.navigation")
    page = await visitor.arrive(await site.user(), "/documents")
    assert not await page.evaluate("'navigation' in window")
    question = page.get_by_role("dialog", name=ASKS)
    await page.get_by_role("button", name="Manage", exact=True).click()
    await page.get_by_role("link", name="Pipelines", exact=True).click()
    await page.get_by_role("link", name="Documents", exact=True).click()
    await page.get_by_role("button", name="New knowledge base").first.click()
    form = await _typed(page)
    for _ in range(2):
        await page.evaluate("history.back()")
        await question.get_by_role("button", name="Keep it").click()
        await expect(page).to_have_url(f"{site.url}/app/documents?new=1")
    await expect(form.get_by_label("Description")).to_have_value("Half a page of careful words")
    await page.evaluate("history.back()")
    await question.get_by_role("button", name="Discard").click()
    await expect(page).to_have_url(f"{site.url}/app/pipelines")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await page.evaluate("history.back()")
    await expect(page).to_have_url(f"{site.url}/app/documents")


@pytest.mark.long
async def test_a_form_on_a_page_without_events(site: Running, visitor: Visitor) -> None:
    """A changed form on the page itself is asked about by a link, too, and by Back."""
    ana = await site.user()
    base = await knowledge_base(ana)
    body = {"name": "Handbook", "knowledge_base_ids": [base["id"]]}
    chat = await publish(ana, (await ana.post("/v1/rag/pipeline", json=body)).json()["pipeline_id"])
    await visitor.context.add_init_script("delete window.navigation; delete Window.prototype.navigation")
    page = await visitor.arrive(ana, "/documents")
    await page.get_by_role("button", name="Manage", exact=True).click()
    await page.get_by_role("link", name="Published chats", exact=True).click()
    await page.locator(f"a[href*='{chat}']").first.click()
    await page.locator("a, button", has_text="Appearance").first.click()
    here = page.url
    greeting = page.get_by_label("Greeting")
    await greeting.fill("Welcome aboard")
    question = page.get_by_role("dialog", name=ASKS)
    away = page.get_by_role("link", name="Documents", exact=True)
    await away.click()
    await question.get_by_role("button", name="Keep it").click()
    await page.evaluate("history.back()")
    await question.get_by_role("button", name="Keep it").click()
    await expect(greeting).to_have_value("Welcome aboard")
    assert page.url == here and chat in here
    await away.click()
    await question.get_by_role("button", name="Discard").click()
    await expect(page).to_have_url(f"{site.url}/app/documents")
    await expect(question).to_have_count(0)


async def test_drafts(site: Running, visitor: Visitor) -> None:
    """Each conversation keeps what is being typed in it, also over a reload; signing out removes it all."""
    ana = await site.user()
    await knowledge_base(ana)
    page = await visitor.sign_in(ana)
    box = page.get_by_label("Your question")
    await visitor.ask("How much may a hotel in Oslo cost per night?")
    await expect(page.locator(".turn")).to_contain_text("185 euro")
    first = page.url
    await box.fill("And in Bergen?")
    await page.get_by_role("button", name="New conversation").click()
    await expect(box).to_have_value("")
    await box.fill("May I work from h")
    await page.get_by_role("navigation", name="Conversations").get_by_role("link").first.click()
    await expect(page).to_have_url(first)
    await expect(box).to_have_value("And in Bergen?")
    await page.reload()
    await expect(box).to_have_value("And in Bergen?")
    await page.get_by_role("link", name="Documents", exact=True).click()
    await page.get_by_role("link", name="Ask", exact=True).click()
    await expect(box).to_have_value("May I work from h")
    await page.get_by_role("button", name=ana.user["username"]).click()
    await page.get_by_role("menuitem", name="Sign out").click()
    await page.get_by_label("Username").wait_for()
    assert (
        await page.evaluate("Object.values(sessionStorage).filter((text) => /Bergen|work/.test(text))") == []
    )


async def test_an_answered_question_is_no_draft(site: Running, visitor: Visitor) -> None:
    """Whoever looks at another page while the answer comes doesn't find the question in the field again."""
    ana = await site.user()
    await knowledge_base(ana)
    page = await visitor.arrive(ana)
    await visitor.ask("How much may a hotel in Oslo cost per night?")
    await page.locator(".turn").wait_for()
    address = page.url.split("/app")[1]
    await visitor.go("/documents")
    await expect(page.get_by_role("navigation", name="Conversations").get_by_role("link")).to_have_count(1)
    await visitor.go(address)
    await expect(page.locator(".turn")).to_contain_text("185 euro")
    await expect(page.get_by_label("Your question")).to_have_value("")


async def _changed_looks(site: Running, visitor: Visitor) -> Locator:
    """The first field of a page's form, with something entered in it."""
    ana = await site.user()
    base = await knowledge_base(ana)
    body = {"name": "Handbook", "knowledge_base_ids": [base["id"]]}
    chat = await publish(ana, (await ana.post("/v1/rag/pipeline", json=body)).json()["pipeline_id"])
    page = await visitor.arrive(ana, f"/chats/{chat}?tab=looks")
    greeting = page.get_by_label("Greeting")
    await greeting.fill("Welcome aboard")
    return greeting


@pytest.mark.parametrize("way", ["menu", "Sign out", "Documents"])
async def test_a_command_with_a_changed_form(site: Running, visitor: Visitor, way: str) -> None:
    """One is asked before signing out, and before a command leads elsewhere, whose Enter answers nothing."""
    greeting = await _changed_looks(site, visitor)
    page = greeting.page

    async def leave() -> None:
        if way == "menu":
            await page.locator(".sidebar-end .menu-trigger").click()
            await page.get_by_role("menuitem", name="Sign out").click()
        else:
            await page.keyboard.press("Control+k")
            await page.get_by_role("combobox", name="Find anything").fill(way)
            await page.keyboard.press("Enter")

    question = page.get_by_role("dialog", name=ASKS)
    await leave()
    await question.get_by_role("button", name="Keep it").click()
    await expect(greeting).to_have_value("Welcome aboard")
    await leave()
    await question.get_by_role("button", name="Discard").click()
    await expect(page).to_have_url(f"{site.url}/app/{'documents' if way == 'Documents' else 'login'}")


async def test_what_is_typed_during_a_save(site: Running, visitor: Visitor) -> None:
    """It isn't saved by that, and one is asked before it is lost."""
    greeting = await _changed_looks(site, visitor)
    page = greeting.page
    go_on = asyncio.Event()

    async def slowly(route: Route) -> None:
        if route.request.method == "PATCH":
            await go_on.wait()
        await route.continue_()

    await page.route("**/v1/rag/endpoints/*", slowly)
    save = page.get_by_role("button", name="Save", exact=True)
    away = page.get_by_role("link", name="Documents", exact=True)
    question = page.get_by_role("dialog", name=ASKS)
    await save.click()
    await greeting.fill("Welcome ashore")
    go_on.set()
    await expect(page.get_by_text("Saved", exact=True)).to_be_visible()
    await expect(save).to_be_enabled()
    await away.click()
    await question.get_by_role("button", name="Keep it").click()
    await expect(greeting).to_have_value("Welcome ashore")
    async with page.expect_response("**/v1/rag/endpoints/*"):
        await save.click()
    await expect(save).to_be_enabled()
    await away.click()
    await expect(page).to_have_url(f"{site.url}/app/documents")
