"""Every page of the client, and one of everything for them to show."""

from __future__ import annotations

from typing import Any

from kernel.sdk import Account, Unit
from kernel.testing import Actor, Running
from tests.builtin_plugins.web_client.visits import HANDBOOK, STATION, evaluate, knowledge_base, publish

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
    "groups": "/people/organizations/{organization}/groups",
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


async def one_of_everything(site: Running) -> tuple[Actor, dict[str, Any]]:
    """A Platform Admin, and the ids of what they made."""
    root = await site.user(role="admin")
    await site.platform.database.write(_promote, root.user["id"])
    root = await site.sign_in(root.user["username"], root.password)
    base = await knowledge_base(root, text=HANDBOOK + STATION, graph=True)
    answer = await root.post(
        "/v1/rag/pipeline",
        json={"name": "Everything about Senja Station", "knowledge_base_ids": [base["id"]]},
    )
    chat = await publish(root, answer.json()["pipeline_id"])
    questions, run = await evaluate(root, base["id"])
    team = (await root.post("/v1/teams", json={"name": f"Field crew {root.user['id']}"})).json()
    organization = (
        await root.post("/v1/organizations", json={"name": "Nordlys", "slug": f"nordlys-{root.user['id']}"})
    ).json()
    await root.post("/v1/auth/tokens", json={"name": "agent"})
    ids = {"base": base["id"], "chat": chat, "set": questions, "run": run}
    return root, {**ids, "team": team["id"], "organization": organization["id"]}


def _promote(unit: Unit, account_id: int) -> None:
    unit.session.get_one(Account, account_id).platform_admin = True
