"""The client speaks the browser's language, or the one that was chosen."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, expect

from kernel.testing import Running
from tests.builtin_plugins.web_client.visits import Visitor, knowledge_base

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_languages(site: Running, browser: Browser) -> None:
    """A browser's language is followed, in any of its regions; the chosen one stays, and the page says which.

    Every language with a file can be chosen by its own name.
    """
    context = await browser.new_context(locale="fr-CA")
    visitor = Visitor(site, context)
    page = await visitor.open("/login")
    await expect(page.get_by_role("button", name="Se connecter", exact=True)).to_be_visible()
    assert await page.locator("html").get_attribute("lang") == "fr"
    choice = page.get_by_label("Langue")
    assert await choice.locator("option").all_inner_texts() == ["English", "Deutsch", "Español", "Français"]
    await choice.select_option(label="Español")
    await expect(page.get_by_label("Contraseña")).to_be_visible()
    await page.reload()
    await expect(page.get_by_label("Contraseña")).to_be_visible()
    assert await page.locator("html").get_attribute("lang") == "es"
    await context.close()
    assert visitor.problems == []


async def test_none_is_singular_in_french(site: Running, browser: Browser) -> None:
    """French counts 0 like 1, English like 2."""
    ana = await site.user()
    await ana.post("/v1/rag/knowledge-bases", json={"name": "Empty"})
    await knowledge_base(ana, name="Filled")
    for locale, none, one in (("fr", "0 document", "1 document"), ("en", "0 documents", "One document")):
        context = await browser.new_context(locale=locale)
        visitor = Visitor(site, context)
        page = await visitor.arrive(ana, "/documents")
        for name, count in (("Empty", none), ("Filled", one)):
            foot = page.locator(".tile", has_text=name).locator(".tile-foot")
            await expect(foot.get_by_text(count, exact=True)).to_be_visible()
        await context.close()
        assert visitor.problems == []
