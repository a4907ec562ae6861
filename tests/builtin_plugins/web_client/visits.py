"""What a person does in a browser, in the words of the tests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

from playwright.async_api import BrowserContext, ConsoleMessage, Page, Route

from kernel.jobs.worker import Worker, executor_slot
from kernel.testing import Actor, Running, eventually

Scheme = Literal["light", "dark"]

# A host that browsers trust no more than any other without HTTPS; "localhost" is more to them.
PLAIN_HOST = "box.example"
HANDBOOK = (
    "# Travel\n\nA hotel in Oslo may cost up to 185 euro per night.\n\n"
    "# Remote work\n\nEmployees may work from home three days a week.\n"
)
STATION = (
    "# Field work\n\nAda Lindqvist leads the Senja Station. Jonas Berg repairs the Aurora Sensor there.\n\n"
    "# Records\n\nThe Senja Station sends its measurements to Tromsø. Ada Lindqvist checks them.\n"
)

# What was changed is drawn, and what that called for, too; nothing moves that comes to an end.
SETTLED = """async () => {
  const frame = () => new Promise(requestAnimationFrame);
  const ends = (one) => one.playState === "running" && one.effect.getComputedTiming().endTime !== Infinity;
  for (let going = null; going === null || going.length; ) {
    await frame();
    await frame();
    going = document.getAnimations().filter(ends);
    await Promise.allSettled(going.map((one) => one.finished));
  }
  await new Promise((done) => setTimeout(done));
}"""
# The page has heard that the system's scheme is another one.
SCHEME = """async (scheme) => {
  const wanted = matchMedia(`(prefers-color-scheme: ${scheme})`);
  if (!wanted.matches) await new Promise((done) => wanted.addEventListener("change", done, { once: true }));
}"""


class Visitor:
    """Somebody with a browser."""

    def __init__(self, site: Running, context: BrowserContext) -> None:
        self.site = site
        self.context = context
        self.problems: list[str] = []
        self._page: Page | None = None

    @property
    def page(self) -> Page:
        assert self._page is not None
        return self._page

    async def open(self, path: str = "") -> Page:
        """Go to an address of the client, in the tab that is open already."""
        if self._page is None:
            self._page = await self.new_tab()
        await self._page.goto(f"{self.site.url}/app{path}")
        return self._page

    async def go(self, path: str) -> Page:
        """Go to another view as by a link: nothing is loaded again but what the view shows."""
        page = self.page
        await page.evaluate(
            "(to) => { history.pushState(null, '', to); dispatchEvent(new PopStateEvent('popstate')); }",
            f"/app{path}",
        )
        for _ in range(2):
            await page.evaluate(SETTLED)
            await page.locator("h1, h2").first.wait_for()
            await page.locator(".skeleton").first.wait_for(state="detached")
        return page

    async def wear(self, scheme: Scheme) -> None:
        """Switch the system to a scheme, and wait until the page is drawn in it."""
        await self.page.emulate_media(color_scheme=scheme)
        await self.page.evaluate(SCHEME, scheme)
        await self.page.evaluate(SETTLED)

    async def new_tab(self) -> Page:
        page = await self.context.new_page()
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", self._hear)
        return page

    def _hear(self, message: ConsoleMessage) -> None:
        if "Content Security Policy" in message.text or "Uncaught" in message.text:
            self.problems.append(message.text)

    async def sign_in(self, actor: Actor, path: str = "") -> Page:
        """Open the client and sign in with a password."""
        page = await self.open(path)
        await page.get_by_label("Username").fill(actor.user["username"])
        await page.get_by_label("Password").fill(actor.password)
        await page.get_by_role("button", name="Sign in", exact=True).click()
        await page.locator(".frame").wait_for()
        return page

    async def arrive(self, actor: Actor, path: str = "") -> Page:
        """Open the client with the session of somebody who is signed in already: quicker than a password."""
        kept = {"token": actor.token, "mustChange": False, "until": 9e15, "lifetime": 9e5}
        text = json.dumps(json.dumps(kept))
        script = f"if (!sessionStorage['platform.session']) sessionStorage['platform.session'] = {text}"
        await self.context.add_init_script(script)
        page = await self.open(path)
        await page.locator(".frame").wait_for()
        return page

    async def ask(self, question: str) -> None:
        await self.page.get_by_label("Your question").fill(question)
        await self.page.keyboard.press("Enter")


async def answer_with(page: Page, text: str) -> None:
    """Have every question on the page answered with a text, as if by a model."""
    data = json.dumps({"text": text})

    async def answer(route: Route) -> None:
        await route.fulfill(content_type="text/event-stream", body=f"event: token\ndata: {data}\n\n")

    await page.route("**/query", answer)


async def knowledge_base(
    actor: Actor, name: str = "Handbook", text: str = HANDBOOK, **fields: Any
) -> dict[str, Any]:
    """A knowledge base with one document that has been read."""
    made = (await actor.post("/v1/rag/knowledge-bases", json={"name": name, **fields})).json()
    path = f"/v1/rag/knowledge-bases/{made['id']}"
    answer = await actor.upload(f"{path}/upload", "handbook.md", text.encode(), "text/markdown")
    assert answer.status == 202, answer.body
    await completed(actor, f"{path}/documents/{answer.json()['document_id']}")
    found: dict[str, Any] = (await actor.get(path)).json()
    return found


@asynccontextmanager
async def working_jobs(running: Running) -> AsyncIterator[None]:
    """A worker for a platform."""
    async with executor_slot(running.platform) as slot:
        stop = asyncio.Event()
        working = asyncio.create_task(Worker(running.platform, slot).run(stop))
        yield
        stop.set()
        await working


async def completed(actor: Actor, path: str) -> None:
    await _when(actor, path, "completed")


async def _when(actor: Actor, path: str, status: str) -> None:
    """The platform's jobs are run as they come: wait until this one's thing has the status."""

    async def reached() -> bool:
        return bool((await actor.get(path)).json()["status"] == status)

    await eventually(reached, seconds=240)


async def publish(actor: Actor, pipeline: str) -> str:
    body = {"name": "Help", "slug": f"help-{pipeline[:8]}", "pipeline_id": pipeline, "allowed_origins": "*"}
    answer = await actor.post("/v1/rag/endpoints", json=body)
    assert answer.status in (200, 201), answer.body
    return str(answer.json()["id"])


async def evaluate(actor: Actor, base: str) -> tuple[str, str]:
    """A set of questions and a run of it in two ways, done; answers their ids."""
    questions = [
        {"question": "How much may a hotel in Oslo cost per night?", "answers": ["185"]},
        {"question": "How many days a week may employees work from home?", "answers": ["three"]},
        {"question": "Who wins the football championship?", "unanswerable": True},
    ]
    body = {"knowledge_base_id": base, "name": "Basics", "questions": questions}
    made = (await actor.post("/v1/rag/evaluation/sets", json=body)).json()
    ways = [{"method": "standard"}, {"method": "standard", "hybrid": False}]
    run = await actor.post("/v1/rag/evaluation/runs", json={"set_id": made["id"], "configurations": ways})
    assert run.status == 202, run.body
    await _when(actor, f"/v1/rag/evaluation/runs/{run.json()['id']}", "done")
    return str(made["id"]), str(run.json()["id"])


async def colleagues(site: Running) -> tuple[Actor, Actor, int]:
    """The owner of an organization, a plain member, and its id."""
    ana, bob = await site.user(role="admin"), await site.user()
    body = {"name": "Nordlys", "slug": f"nordlys-{bob.user['id']}"}
    made = (await ana.post("/v1/organizations", json=body)).json()["id"]
    member = {"user_id": bob.user["id"], "org_role": "member"}
    assert (await ana.post(f"/v1/organizations/{made}/members", json=member)).status == 201
    return ana, bob, made
