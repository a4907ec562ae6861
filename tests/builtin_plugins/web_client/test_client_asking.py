"""Asking: which documents are asked, in which settings, and what is left of a question that failed."""

from __future__ import annotations

import json
import re

import pypdfium2
import pytest
from playwright.async_api import Route, expect

from kernel.testing import Running
from tests.builtin_plugins.web_client.visits import Visitor, answer_with, knowledge_base

pytestmark = pytest.mark.asyncio(loop_scope="session")

QUESTION = "How much may a hotel in Oslo cost per night?"
LIGHTHOUSE = "How tall is the lighthouse?"
QUERY = re.compile(r"/query$")


async def _busy(route: Route) -> None:
    await route.fulfill(status=503, json={"detail": "The server is busy", "code": "busy"})


async def test_a_knowledge_base_is_asked_again(site: Running, visitor: Visitor) -> None:
    """Its first question makes a pipeline, later ones use it; whoever comes from it asks it, and no other."""
    ana = await site.user()
    await knowledge_base(ana, "Handbook")
    base = await knowledge_base(ana, "Island", "The lighthouse is 33 metres tall.\n")
    page = await visitor.arrive(ana, f"/?base={base['id']}")
    for count in (1, 2, 3):
        await visitor.ask(LIGHTHOUSE)
        await expect(page.locator(".answer .sources")).to_have_count(count)
    made = (await ana.get("/v1/rag/pipeline")).json()["items"]
    assert [item["name"] for item in made] == ["Island"]
    await ana.post("/v1/rag/pipeline", json={"name": "All", "knowledge_base_ids": [base["id"]]})
    chosen = page.get_by_label("What to ask").locator("option:checked")
    await page.get_by_label("What to ask").select_option(label="Handbook")
    await visitor.ask(QUESTION)
    await expect(page.locator(".answer .sources")).to_have_count(4)
    await visitor.open(f"/documents/{base['id']}")
    await page.locator("main").get_by_role("link", name="Ask", exact=True).click()
    await expect(chosen).to_have_text("Island")


async def test_what_a_colleague_asks_is_listed_once(site: Running, visitor: Visitor) -> None:
    """Administrators see the pipelines that others made by asking; their own is offered, and used."""
    root, ben = await site.user(role="admin"), await site.user()
    base = await knowledge_base(root, "Island 7", "The lighthouse is 33 metres tall.\n", visibility="shared")
    body = {"name": "Island 7", "knowledge_base_ids": [base["id"]]}
    assert (await ben.post("/v1/rag/pipeline", json=body)).status == 200
    page = await visitor.arrive(root, f"/?base={base['id']}")
    options = page.get_by_label("What to ask").locator("option", has_text="Island 7")
    for count in (1, 2):
        await expect(options).to_have_count(1)
        await visitor.ask(LIGHTHOUSE)
        await expect(page.locator(".answer .sources")).to_have_count(count)
        await page.reload()
    pipelines = (await root.get("/v1/rag/pipeline?limit=500")).json()["items"]
    owners = [one["owner_user_id"] for one in pipelines if one["knowledge_base_ids"] == [base["id"]]]
    assert owners == [ben.user["id"], root.user["id"]]


# Counts how often each frame changes the text of an answer.
WATCH = """() => {
  let changes = 0;
  let before = "";
  window.drawn = [];
  new MutationObserver(() => {
    const text = document.querySelector(".markdown")?.textContent ?? "";
    changes += text !== before;
    before = text;
  }).observe(document.body, { subtree: true, childList: true, characterData: true });
  const frame = () => {
    window.drawn.push(changes);
    changes = 0;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}"""


def _events(*events: tuple[str, dict[str, object]]) -> str:
    return "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events)


async def test_a_fast_model(site: Running, visitor: Visitor) -> None:
    """Words that arrive together are drawn together; a stream that ends without an answer's end has failed,
    though nothing else says so, and can be tried again.
    """
    ana = await site.user()
    await knowledge_base(ana)
    words: list[tuple[str, dict[str, object]]] = [("token", {"text": f"word {n} "}) for n in range(400)]

    async def answer(route: Route) -> None:
        await route.fulfill(
            content_type="text/event-stream", body=_events(("sources", {"sources": []}), *words)
        )

    await visitor.context.route(QUERY, answer)
    page = await visitor.arrive(ana)
    await page.evaluate(WATCH)
    await visitor.ask(QUESTION)
    turn = page.locator(".turn")
    await expect(turn.get_by_role("alert")).to_contain_text("lost before the answer was complete")
    await expect(turn).to_contain_text("word 399")
    assert 0 < max(await page.evaluate("drawn")) <= 2
    await visitor.context.unroute(QUERY)
    await turn.get_by_role("button", name="Try again").click()
    await expect(turn).to_contain_text("185 euro")
    await expect(turn.get_by_role("heading", name="From your documents")).to_be_visible()


async def test_a_number_is_typed_anew(site: Running, visitor: Visitor) -> None:
    """An emptied field stays empty while one types; what is out of bounds is brought within them."""
    ana = await site.user()
    await knowledge_base(ana)
    page = await visitor.arrive(ana)
    await page.get_by_role("button", name="How to answer").click()
    field = page.get_by_label("Passages to read")
    await field.clear()
    await expect(field).to_have_value("")
    await field.press_sequentially("12")
    async with page.expect_request(QUERY) as sent:
        await visitor.ask(QUESTION)
    assert (await sent.value).post_data_json["top_k"] == 12
    await field.fill("512")
    await field.blur()
    await expect(field).to_have_value("50")


_KEEP = "([key, drafts]) => sessionStorage.setItem(key, JSON.stringify(drafts))"


async def test_a_question_that_failed(site: Running, visitor: Visitor) -> None:
    """No tick says that something was read. After a reload the question is in its box, and nothing is said of
    a conversation that isn't found: it was begun here, and the server never knew it. One that is gone is.
    """
    ana = await site.user()
    await knowledge_base(ana)
    await visitor.context.route(QUERY, _busy)
    page = await visitor.arrive(ana)
    await visitor.ask(QUESTION)
    await expect(page.locator(".turn")).to_contain_text("The server is busy")
    await expect(page.locator(".turn")).not_to_contain_text("passages")
    await expect(page.get_by_label("Your question")).to_have_value("")
    await page.reload()
    await expect(page.get_by_role("heading", name="What would you like to know?")).to_be_visible()
    await expect(page.get_by_role("alert")).to_have_count(0)
    await expect(page.get_by_label("Your question")).to_have_value(QUESTION)
    await visitor.context.unroute(QUERY)
    await page.keyboard.press("Enter")
    await expect(page.locator(".turn")).to_contain_text("185 euro")
    await page.reload()
    await expect(page.locator(".turn")).to_contain_text("Read one passage")
    await expect(page.get_by_label("Your question")).to_have_value("")
    conversation = page.url.rpartition("/")[2]
    kept = {conversation: QUESTION}  # as if the page had been left before it heard of the answer
    await page.evaluate(_KEEP, [f"platform.drafts.{ana.user['id']}", kept])
    await page.reload()
    await expect(page.locator(".turn")).to_contain_text("Read one passage")
    await expect(page.get_by_label("Your question")).to_have_value("")
    gone = await ana.delete(f"/v1/conversations/{conversation}")
    assert gone.status == 204, gone.body
    await page.reload()
    await expect(page.get_by_role("alert")).to_have_text("Conversation not found")


async def test_a_question_that_failed_is_the_accounts_own(site: Running, visitor: Visitor) -> None:
    """Whoever signs in next in the tab finds no conversation at its address."""
    ana, bob = await site.user(), await site.user()
    await knowledge_base(ana, visibility="shared")
    await visitor.context.route(QUERY, _busy)
    page = await visitor.arrive(ana)
    await visitor.ask(QUESTION)
    await expect(page.locator(".turn")).to_contain_text("The server is busy")
    address = page.url
    await page.get_by_role("button", name=ana.user["username"]).click()
    await page.get_by_role("menuitem", name="Sign out").click()
    await page.get_by_label("Username").fill(bob.user["username"])
    await page.get_by_label("Password").fill(bob.password)
    await page.get_by_role("button", name="Sign in", exact=True).click()
    await expect(page.get_by_label("Your question")).to_have_value("")
    await page.goto(address)
    await expect(page.get_by_role("alert")).to_have_text("Conversation not found")


async def test_the_next_account_in_a_tab(site: Running, visitor: Visitor) -> None:
    """Whoever signs in after somebody else finds neither what they typed nor, where nothing is kept, their
    answers.
    """
    ana, bob = await site.user(), await site.user()
    await knowledge_base(ana, visibility="shared")
    await visitor.context.route("**/v1/conversations/mine*", lambda route: route.fulfill(status=404, json={}))
    page = await visitor.sign_in(ana)
    await visitor.ask(QUESTION)
    await expect(page.locator(".turn")).to_contain_text("185 euro")
    await page.get_by_label("Your question").fill("What does my salary")
    await page.get_by_role("button", name=ana.user["username"]).click()
    await page.get_by_role("menuitem", name="Sign out").click()
    await page.get_by_label("Username").fill(bob.user["username"])
    await page.get_by_label("Password").fill(bob.password)
    await page.get_by_role("button", name="Sign in", exact=True).click()
    await expect(page.get_by_label("Your question")).to_have_value("")
    await expect(page.locator(".turn")).to_have_count(0)


async def test_a_conversation_on_paper(site: Running, visitor: Visitor) -> None:
    """Printed, an answer longer than the screen is whole, without what one would press."""
    ana = await site.user()
    await knowledge_base(ana)
    page = await visitor.arrive(ana)
    await answer_with(page, "\n\n".join(f"Stage {n} of the journey. " * 9 for n in range(60)))
    await visitor.ask("Which way is it?")
    await expect(page.locator(".markdown")).to_contain_text("Stage 59")
    sheets = pypdfium2.PdfDocument(await page.pdf())
    text = "".join(sheet.get_textpage().get_text_range() for sheet in sheets)
    assert [n for n in range(60) if f"Stage {n} of" not in text] == []
    assert "Published chats" not in text
    assert "Ask your documents" not in text
