"""Every button of every page is pressed once, by an administrator and by a member.

A button must do something that can be seen, and nothing that is refused: no button for what one may not do.
"""

from __future__ import annotations

import asyncio
import re

import pytest
from playwright.async_api import Browser, ConsoleMessage, Locator, Page, Request, Response

from kernel.testing import Actor, Running
from tests.builtin_plugins.web_client.places import PAGES, one_of_everything
from tests.builtin_plugins.web_client.visits import SETTLED, Visitor
from tests.fakes.browser import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="session")

# They would take away what the rest of the walk shows; tests of their own press them.
LEFT_OUT = re.compile(r"^(Turn (on|off)|Uninstall|Sign out.*|Record|Speak.*|Remove .+\.(md|pdf))$")
STATE = """() => JSON.stringify([
  location.href, document.body.innerHTML, document.activeElement?.outerHTML.slice(0, 80),
  [...document.querySelectorAll("input, select, textarea")].map((one) => one.value + one.checked),
])"""
# A member may look at these, which tell them that they may not.
OF_ADMINISTRATORS = ("accounts", "audit", "logs", "backups", "settings")


class Walker:
    """Presses buttons and notes what came of it."""

    def __init__(self, visitor: Visitor) -> None:
        self.visitor = visitor
        self.found: list[str] = []
        self._heard: list[str] = []
        self._asked = 0
        self._open: set[Request] = set()
        self._quiet = asyncio.Event()
        self._quiet.set()

    def listen(self, page: Page) -> None:
        """Hear what the page complains of, and what it asks for."""
        page.on("console", self._console)
        page.on("response", self._response)
        page.on("request", self._request)
        page.on("requestfinished", self._ended)
        page.on("requestfailed", self._ended)
        page.on("pageerror", lambda error: self._heard.append(f"script: {error}"))

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error" and "Failed to load resource" not in message.text:
            self._heard.append(f"console: {message.text}")

    def _response(self, response: Response) -> None:
        if response.status >= 400:
            self._heard.append(f"{response.status} {response.request.method} {response.url}")

    def _request(self, request: Request) -> None:
        self._asked += 1
        if request.frame == self.visitor.page.main_frame:  # a preview's frame may go while it loads
            self._open.add(request)
            self._quiet.clear()

    def _ended(self, request: Request) -> None:
        self._open.discard(request)
        if not self._open:
            self._quiet.set()

    async def _settle(self) -> None:
        """Wait until all that the page itself has asked for is there, and drawn."""
        await self.visitor.page.evaluate(SETTLED)
        while self._open:
            await asyncio.wait_for(self._quiet.wait(), PATIENCE / 1000)
            await self.visitor.page.evaluate(SETTLED)

    async def walk(self, name: str, path: str) -> None:
        """Press every button of a page; what opens is looked at too."""
        await self._arrive(name, path)
        place = "dialog[open]" if await self.visitor.page.locator("dialog[open]").count() else "main"
        selector = f"{place} button:visible, {place} summary:visible"
        buttons = await self._buttons(selector)
        for index, (label, count) in enumerate(buttons):
            if count > 1 or LEFT_OUT.match(label):
                continue  # the first of many rows stands for all
            await self._press(name, path, selector, index, label)
            items = await self._buttons("[role=menuitem]:visible")
            for at, (item, _) in enumerate(items):
                if LEFT_OUT.match(item):
                    continue
                await self._arrive(name, path)
                await self._at(selector, index).click()
                await self._press(name, path, "[role=menuitem]:visible", at, f"{label} > {item}")
            await self._arrive(name, path)

    async def _arrive(self, name: str, path: str) -> None:
        page = self.visitor.page
        if await page.locator("dialog[open]").count():
            await page.keyboard.press("Escape")
        await self.visitor.go("/keys" if path != "/keys" else "/account")
        self._heard.clear()
        await self.visitor.go(path)
        self._note(name, "arriving")

    async def _buttons(self, selector: str) -> list[tuple[str, int]]:
        """Each button's name, and how many came before it with the same one."""
        labels: list[str] = await self.visitor.page.locator(selector).evaluate_all(
            "(all) => all.map((one) => one.disabled ? '' : one.ariaLabel ?? one.textContent.trim())"
        )
        plain = [re.sub(r"[0-9]+|“.*”|(?<=on |ng ).*", "", label) for label in labels]
        return [(label, plain[:at].count(plain[at])) for at, label in enumerate(labels)]

    def _at(self, selector: str, index: int) -> Locator:
        return self.visitor.page.locator(selector).nth(index)

    async def _press(self, name: str, path: str, selector: str, index: int, label: str) -> None:
        page = self.visitor.page
        button = self._at(selector, index)
        if not label.strip() or await button.is_disabled() or not await button.count():
            return
        before, asked = await page.evaluate(STATE), self._asked
        await button.click()
        await self._settle()
        self._note(name, label)
        if self._asked == asked and await page.evaluate(STATE) == before:
            self.found.append(f"{name}: “{label}” does nothing")

    def _note(self, name: str, label: str) -> None:
        self.found += [f"{name}: “{label}”: {what}" for what in self._heard]
        self._heard.clear()


@pytest.mark.long
@pytest.mark.parametrize("who", ["administrator", "member"])
async def test_every_button(site: Running, browser: Browser, who: str) -> None:
    """Each leads somewhere, to no error, and to nothing that is refused."""
    root, ids = await one_of_everything(site)
    actor: Actor = root if who == "administrator" else await site.user()
    context = await browser.new_context(locale="en-GB", permissions=["clipboard-read", "clipboard-write"])
    visitor = Visitor(site, context)
    walker = Walker(visitor)
    walker.listen(await visitor.arrive(actor, "/keys"))
    for name, path in PAGES.items():
        if who == "administrator" or ("{" not in path and name not in OF_ADMINISTRATORS):
            await walker.walk(name, path.format(**ids))
    await context.close()
    assert visitor.problems == []
    assert not walker.found, "\n".join(walker.found)
