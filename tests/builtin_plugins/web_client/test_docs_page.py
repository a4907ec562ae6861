"""The page of the API's documents in a browser: signing in there."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.builtin_plugins.web_client.visits import Visitor

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_signing_in_on_the_page(visitor: Visitor) -> None:
    """A wrong password is said; after the right one, the page asks as the account."""
    ann = await visitor.site.user()
    page = await visitor.new_tab()
    await page.goto(f"{visitor.site.url}/docs")
    form = page.locator("#sign-in")
    await expect(page.locator(".btn.authorize.unlocked")).to_be_visible()
    await form.get_by_label("Username").fill(ann.user["username"])
    await form.get_by_label("Password").fill("not this one")
    await form.get_by_role("button", name="Sign in").click()
    await expect(form.locator("output")).to_contain_text("Invalid username or password")
    await form.get_by_label("Password").fill(ann.password)
    await form.get_by_role("button", name="Sign in").click()
    await expect(form.locator("output")).to_have_text(f"Signed in as {ann.user['username']}")
    await expect(page.locator(".btn.authorize.locked")).to_be_visible()
