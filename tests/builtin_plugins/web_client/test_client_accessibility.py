"""Every page in both schemes and three sizes: no serious finding of axe, nothing wider than the screen."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, ViewportSize

from kernel.sdk import Account, Unit
from kernel.testing import Actor, Running
from tests.builtin_plugins.web_client.visits import (
    HANDBOOK,
    SETTLED,
    STATION,
    Visitor,
    evaluate,
    knowledge_base,
    publish,
)
from tests.fakes.npm import npm_folder

pytestmark = pytest.mark.asyncio(loop_scope="session")

PAGES = {
    "ask": "",
    "documents": "/documents",
    "new-knowledge-base": "/documents?new=1",
    "knowledge-base": "/documents/{base}",
    "pipelines": "/pipelines",
    "chats": "/chats",
    "chat": "/chats/{chat}",
    "chat-looks": "/chats/{chat}?tab=looks",
    "graph": "/graph?base={base}&entity=Senja Station",
    "graph-topics": "/graph?base={base}&show=topics",
    "graph-correlations": "/graph?base={base}&show=correlations",
    "evaluation": "/evaluation?base={base}",
    "question-set": "/evaluation/sets/{set}",
    "evaluation-run": "/evaluation/runs/{run}?with={run}",
    "tools": "/tools",
    "plugins": "/plugins",
    "plugin": "/plugins/rag",
    "marketplace": "/plugins/marketplace",
    "licences": "/plugins/licences",
    "teams": "/people",
    "team": "/people/teams/{team}",
    "organizations": "/people/organizations",
    "organization": "/people/organizations/{organization}",
    "roles": "/people/organizations/{organization}/roles",
    "accounts": "/people/accounts",
    "keys": "/keys",
    "audit": "/audit",
    "operations": "/operations",
    "models": "/operations/models",
    "bundles": "/operations/bundles",
    "logs": "/operations/logs",
    "backups": "/operations/backups",
    "settings": "/operations/settings?q=retention",
    "account": "/account",
}
OPEN = {"sign-in": "/login", "register": "/register", "forgot": "/forgot-password", "invite": "/invites"}
SIZES: dict[str, ViewportSize] = {
    "desktop": {"width": 1440, "height": 900},
    "tablet": {"width": 820, "height": 1100},
    "phone": {"width": 360, "height": 740},
}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
# Where screenshots go, for people to look at; without it none are taken.
SHOTS = os.environ.get("PLATFORM_TEST_SCREENSHOTS")
FINDINGS = """async (options) => {
  const { violations } = await axe.run(document, options);
  return violations.filter(({ impact }) => ["serious", "critical"].includes(impact)).map(
    ({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html }) => html.slice(0, 160)).join(" | ")}`);
}"""


@pytest.fixture(scope="session")
def axe() -> str:
    """axe-core, from npm."""
    folder = npm_folder(Path(__file__).parent / "axe", "the tests of accessibility")
    return (folder / "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def places(site: Running) -> tuple[Actor, dict[str, Any]]:
    """A Platform Admin who has one of everything."""
    root = await site.user(role="admin")
    await site.platform.database.write(_promote, root.user["id"])
    root = await site.sign_in(root.user["username"], root.password)
    base = await knowledge_base(root, text=HANDBOOK + STATION, graph=True)
    answer = await root.post(
        "/v1/rag/pipeline", json={"name": "Handbook", "knowledge_base_ids": [base["id"]]}
    )
    chat = await publish(root, answer.json()["pipeline_id"])
    questions, run = await evaluate(root, base["id"])
    team = (await root.post("/v1/teams", json={"name": "Field crew"})).json()
    organization = (await root.post("/v1/organizations", json={"name": "Nordlys", "slug": "nordlys"})).json()
    await root.post("/v1/auth/tokens", json={"name": "agent"})
    ids = {"base": base["id"], "chat": chat, "set": questions, "run": run}
    return root, {**ids, "team": team["id"], "organization": organization["id"]}


@pytest.mark.parametrize("pages", [OPEN, PAGES], ids=["open", "signed-in"])
async def test_every_page(
    site: Running, browser: Browser, axe: str, places: tuple[Actor, dict[str, Any]], pages: dict[str, str]
) -> None:
    """axe finds nothing serious on any page, in either scheme; none is wider than a screen of 360 pixels.

    One visit of each page serves all schemes and sizes, and the next page is gone to as by a link.
    """
    root, ids = places
    context = await browser.new_context(bypass_csp=True, reduced_motion="reduce", locale="en-GB")
    visitor = Visitor(site, context)
    page = await (visitor.arrive(root) if pages is PAGES else visitor.open("/login"))
    await page.evaluate(axe)
    found: dict[str, Any] = {}
    wide = []
    for name, path in pages.items():
        await page.set_viewport_size(SIZES["desktop"])
        await page.emulate_media(color_scheme="light")
        await visitor.go(path.format(**ids))
        found[name] = await page.evaluate(FINDINGS, {"resultTypes": ["violations"]})
        for size, viewport in SIZES.items():
            await page.set_viewport_size(viewport)
            for scheme in SCHEMES:
                await page.emulate_media(color_scheme=scheme)
                await page.evaluate(SETTLED)
                if size == "desktop" and scheme == "dark":
                    found[name] += await page.evaluate(FINDINGS, {"runOnly": ["color-contrast"]})
                await _keep(page, f"{name}-{size}-{scheme}")
            if not await page.evaluate("document.documentElement.scrollWidth <= innerWidth"):
                wide.append(f"{name} at {viewport['width']}")
    await context.close()
    assert visitor.problems == []
    assert {name: findings for name, findings in found.items() if findings} == {}
    assert wide == []


async def _keep(page: Page, name: str) -> None:
    if SHOTS:
        await page.screenshot(path=Path(SHOTS) / f"{name}.png")


def _promote(unit: Unit, account_id: int) -> None:
    unit.session.get_one(Account, account_id).platform_admin = True
