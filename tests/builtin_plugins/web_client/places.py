"""Every page of the client, and one of everything for them to show."""

from __future__ import annotations

import io
import uuid
import zipfile
from pathlib import Path
from typing import Any

from builtin_plugins.source_folder.settings import SourceFolderSettings
from kernel.sdk import Account, Unit
from kernel.testing import Actor, Running, eventually
from tests.builtin_plugins.web_client.visits import (
    HANDBOOK,
    STATION,
    completed,
    evaluate,
    knowledge_base,
    publish,
)

SAMPLE = Path(__file__).parents[3] / "builtin_plugins/demo/samples/travel-policy.pdf"

PAGES = {
    "ask": "",
    "conversation": "/ask/{conversation}",
    "attached-files": "/ask/{attached}",
    "documents": "/documents",
    "new-knowledge-base": "/documents?new=1",
    "knowledge-base": "/documents/{base}",
    "document": "/documents/{base}/{document}?from=40&to=80",
    "document-pdf": "/documents/{base}/{pdf}?at=2",
    "document-passages": "/documents/{base}/{document}?tab=passages",
    "document-details": "/documents/{base}/{document}?tab=details",
    "sources": "/documents/{base}/sources",
    "source": "/documents/{base}/sources/{source}",
    "source-items": "/documents/{base}/sources/{source}?tab=items",
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
    "listing": "/plugins/marketplace/{listing}",
    "licenses": "/plugins/licenses",
    "teams": "/people",
    "team": "/people/teams/{team}",
    "organizations": "/people/organizations",
    "organization": "/people/organizations/{organization}",
    "roles": "/people/organizations/{organization}/roles",
    "groups": "/people/organizations/{organization}/groups",
    "accounts": "/people/accounts?q={person}",
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
    pipeline = answer.json()["pipeline_id"]
    chat = await publish(root, pipeline)
    conversation = await _talk(root, pipeline)
    questions, run = await evaluate(root, base["id"])
    team = (await root.post("/v1/teams", json={"name": f"Field crew {root.user['id']}"})).json()
    organization = (
        await root.post("/v1/organizations", json={"name": "Nordlys", "slug": f"nordlys-{root.user['id']}"})
    ).json()
    await root.post("/v1/auth/tokens", json={"name": "agent"})
    ids = {"base": base["id"], "chat": chat, "set": questions, "run": run, "conversation": conversation}
    ids["attached"] = await _attached(root, pipeline)
    ids |= await _files(root, base["id"])
    ids["source"] = await _source(site, root, base["id"])
    # Others may be the only owner of an organization, and can't be deactivated.
    ids["person"] = (await site.user()).user["username"]
    listings = (await root.get("/v1/marketplace/plugins")).json()["plugins"]
    ids |= {"team": team["id"], "organization": organization["id"], "listing": listings[0]["id"]}
    return root, ids


async def _talk(root: Actor, pipeline: str) -> str:
    conversation = str(uuid.uuid4())
    for question in ("How much may a hotel in Oslo cost per night?", "Who wins the football championship?"):
        body = {"question": question, "conversation_id": conversation}
        assert (await root.post(f"/v1/rag/pipeline/{pipeline}/query", json=body)).status == 200
    return conversation


async def _attached(root: Actor, pipeline: str) -> str:
    """A conversation with a file that was read and one that could not be."""
    conversation = await _talk(root, pipeline)
    made = (await root.post("/v1/rag/knowledge-bases", json={"name": "Files from questions"})).json()
    path = f"/v1/rag/knowledge-bases/{made['id']}"
    for name, content in (("minutes.md", HANDBOOK), ("damaged.pdf", "%PDF-1.7\nnothing\n")):
        document = (await root.upload(f"{path}/upload", name, content.encode())).json()["document_id"]
        tags = {"tags": [f"conversation:{conversation}"]}
        answer = await root.patch(f"{path}/documents/{document}/metadata", json=tags)
        assert answer.status == 200, answer.body
    return conversation


async def _files(root: Actor, base: str) -> dict[str, str]:
    """A text and a PDF, and an archive of which something was left out."""
    path = f"/v1/rag/knowledge-bases/{base}"
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as box:
        box.writestr("program.exe", b"MZ" + bytes(range(256)))
    for name, content in (("travel-policy.pdf", SAMPLE.read_bytes()), ("box.zip", archive.getvalue())):
        answer = await root.upload(f"{path}/upload", name, content)
        await completed(root, f"{path}/documents/{answer.json()['document_id']}")
    items = (await root.get(f"{path}/documents")).json()["items"]
    listed = {one["filename"]: one["document_id"] for one in items}
    return {"document": listed["handbook.md"], "pdf": listed["travel-policy.pdf"]}


async def _source(site: Running, root: Actor, base: str) -> str:
    """A folder of which something was left out, and the run that found it."""
    allowed = Path(site.platform.settings_of(SourceFolderSettings).source_folders)
    folder = allowed / base
    folder.mkdir()
    for name, text in (("rules.md", "# Rules\n\nBe kind."), ("empty.txt", ""), ("draft.log", "x")):
        (folder / name).write_text(text)
    body = {"kind": "folder", "name": "Policies", "settings": {"path": str(folder)}, "schedule": "@hourly"}
    body["filters"] = {"exclude": ["*.log"]}
    made = (await root.post(f"/v1/rag/knowledge-bases/{base}/sources", json=body)).json()

    async def is_done() -> bool:
        found = (await root.get(f"/v1/rag/sources/{made['id']}")).json()
        return bool(found["last_run"]["state"] == "done")

    await eventually(is_done)
    return str(made["id"])


def _promote(unit: Unit, account_id: int) -> None:
    unit.session.get_one(Account, account_id).platform_admin = True
