"""Every page in both schemes and three sizes: no serious finding of axe, nothing wider than the screen."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page

from kernel.sdk import Account, Unit
from kernel.testing import Actor, Running
from tests.builtin_plugins.web_client.visits import (
    HANDBOOK,
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
    "account": "/account",
}
OPEN = {"sign-in": "/login", "register": "/register", "forgot": "/forgot-password", "invite": "/invites"}
SIZES = {"desktop": (1360, 860), "tablet": (820, 1100), "phone": (360, 740)}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
# Where screenshots go, for people to look at; without it none are taken.
SHOTS = os.environ.get("PLATFORM_TEST_SCREENSHOTS")
FINDINGS = """async () => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"] });
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


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_no_serious_finding(
    site: Running,
    browser: Browser,
    axe: str,
    places: tuple[Actor, dict[str, Any]],
    scheme: Literal["light", "dark"],
) -> None:
    """axe finds nothing serious or critical, on any page."""
    root, ids = places
    found: dict[str, Any] = {}
    options: dict[str, Any] = {"color_scheme": scheme, "bypass_csp": True, "reduced_motion": "reduce"}
    for pages, who in ((OPEN, None), (PAGES, root)):
        context = await browser.new_context(viewport={"width": 1360, "height": 860}, **options)
        visitor = Visitor(site, context)
        for name, path in pages.items():
            page = await _go(visitor, who, path.format(**ids))
            await page.evaluate(axe)
            found[name] = await page.evaluate(FINDINGS)
        await context.close()
        assert visitor.problems == []
    assert {name: findings for name, findings in found.items() if findings} == {}


@pytest.mark.parametrize("size", SIZES)
async def test_nothing_is_cut_off(
    site: Running, browser: Browser, places: tuple[Actor, dict[str, Any]], size: str
) -> None:
    """No page is wider than the screen, from 360 pixels on."""
    root, ids = places
    width, height = SIZES[size]
    wide = []
    for scheme in SCHEMES if SHOTS else SCHEMES[:1]:
        for pages, who in ((OPEN, None), (PAGES, root)):
            context = await browser.new_context(
                viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
            )
            visitor = Visitor(site, context)
            for name, path in pages.items():
                page = await _go(visitor, who, path.format(**ids))
                if not await page.evaluate("document.documentElement.scrollWidth <= innerWidth"):
                    wide.append(name)
                await _keep(page, f"{name}-{size}-{scheme}")
            await context.close()
    assert wide == []


async def _go(visitor: Visitor, who: Actor | None, path: str) -> Page:
    page = await (visitor.arrive(who, path) if who else visitor.open(path))
    await page.locator("h1, h2").first.wait_for()
    await page.locator(".skeleton").first.wait_for(state="detached")
    return page


async def _keep(page: Page, name: str) -> None:
    if SHOTS:
        await page.screenshot(path=Path(SHOTS) / f"{name}.png")


def _promote(unit: Unit, account_id: int) -> None:
    unit.session.get_one(Account, account_id).platform_admin = True
