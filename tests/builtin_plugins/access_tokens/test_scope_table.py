"""Scopes × routes: what each scope of a personal access token opens, over every route there is.

A route that names no scope belongs to `manage`. What is open to more than that, and what is closed to every
token, is listed here, so that each is a decision.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from kernel.gateway.app import gateway_app
from kernel.http.endpoint import Endpoint
from kernel.plugins.loading import installed
from kernel.testing import Actor, Running, platforms
from tests.fakes.hash_embeddings import HashEmbeddings

pytestmark = pytest.mark.asyncio(loop_scope="module")

_RAG = ("knowledge-bases", "knowledge-base")
ASK = {
    *(f"GET /v1/rag/{name}{rest}" for name in _RAG for rest in ("", "/{kb_id}", "/{kb_id}/documents")),
    *(
        f"GET /v1/rag/{name}/{{kb_id}}/documents/{{document_id}}{rest}"
        for name in _RAG
        for rest in ("", "/chunks", "/content", "/versions")
    ),
    *(f"GET /v1/rag/{name}/{{kb_id}}/documents/by-path/{{path}}" for name in _RAG),
    *(f"POST /v1/rag/{name}/{{kb_id}}/search" for name in _RAG),
    "POST /v1/rag/dify/retrieval",
    "GET /v1/rag/oikb/api/v1/knowledge/{kb_id}",
    "GET /v1/rag/oikb/api/v1/knowledge/{kb_id}/files",
    "GET /v1/rag/documents",
    "GET /v1/rag/knowledge-bases/{kb_id}/topics",
    "POST /v1/rag/knowledge-bases/{kb_id}/facets",
    "POST /v1/rag/pipeline/{pipeline_id}/facets",
    *(f"POST /v1/graph-rag/{name}" for name in ("extract", "retrieve", "entity-context", "graph/search")),
    *(f"GET /v1/graph-rag/graph/{name}" for name in ("stats", "documents", "correlations", "export")),
    "GET /v1/graph-rag/graph/network",
    "GET /v1/rag/knowledge-bases/{kb_id}/ingestion",
    "GET /v1/rag/knowledge-bases/{kb_id}/documents/{document_id}/origin",
    "GET /v1/rag/knowledge-bases/{kb_id}/documents/{document_id}/difference",
    "GET /v1/rag/knowledge-bases/{kb_id}/documents/{document_id}/preview",
    "GET /v1/rag/knowledge-bases/{kb_id}/contradictions",
    "GET /v1/rag/knowledge-bases/{kb_id}/fields",
    "GET /v1/rag/knowledge-bases/{kb_id}/fields/{name}",
    "GET /v1/rag/knowledge-bases/{kb_id}/metadata-rules",
    "GET /v1/rag/knowledge-bases/{kb_id}/metadata.csv",
    "GET /v1/rag/knowledge-bases/{kb_id}/documents/{document_id}/metadata",
    "POST /v1/graph-rag/graph/correlate",
    "POST /v1/graph-rag/overview",
    "POST /v1/graph-rag/sparql",
    "GET /v1/ai/models",
    "GET /v1/ai/models/{model}",
    "GET /v1/rag",
    "GET /v1/rag/capabilities",
    "GET /v1/rag/pipeline",
    "GET /v1/rag/usage",
    "POST /v1/ai/audio/speech",
    "POST /v1/ai/audio/transcriptions",
    "POST /v1/ai/chat/completions",
    "POST /v1/ai/embeddings",
    "POST /v1/ai/responses",
    *(
        f"GET {base}/{rest}"
        for base in ("/v1", "/v1/ai")
        for rest in (
            *("files", "files/{file_id}", "files/{file_id}/content", "vector_stores"),
            *(
                f"vector_stores/{{vector_store_id}}{one}"
                for one in ("", "/files", "/files/{file_id}", "/files/{file_id}/content")
            ),
            *(f"vector_stores/{{vector_store_id}}/file_batches/{{batch_id}}{one}" for one in ("", "/files")),
        )
    ),
    *(f"POST {base}/vector_stores/{{vector_store_id}}/search" for base in ("/v1", "/v1/ai")),
    "POST /v1/chat/completions",
    "POST /v1/embeddings",
    "GET /v1/models/choices",
    "POST /v1/models/{model_id}/test",
    "POST /v1/responses",
    "POST /v1/stt",
    "POST /v1/tts",
    "GET /v1/rag/pipeline/{pipeline_id}",
    "POST /v1/rag/pipeline/{pipeline_id}/query",
    "POST /v1/rag/pipeline/{pipeline_id}/search",
    "GET /v1/rag/pipeline/{pipeline_id}/conversations",
    "GET /v1/conversations/mine",
    "GET /v1/conversations/mine/export",
    "GET /v1/conversations/shared-with-me",
    *(f"GET /v1/conversations/{{conversation_id}}{rest}" for rest in ("", "/turns", "/export")),
}
TOOLS = {
    "GET /v1/ai/tools/v1/plugins/{plugin}/actions/{action}",
    "POST /v1/tools/validate",
    "POST /v1/tools/{tool_name}/execute",
    "GET /v1/mcp/servers",
    "GET /v1/plugins/{name}/actions/{action}",
    "POST /v1/plugins/{name}/actions/{action}",
}
_MARKETPLACE = ("plugins", "plugins/search", "plugins/featured", "plugins/{plugin_id}")
EITHER = {
    "GET /v1/ai/functions/definitions",
    *(f"GET /v1/marketplace/{name}" for name in _MARKETPLACE),
    "GET /v1/marketplace/plugins/{plugin_id}/ratings",
    "GET /v1/marketplace/ai/tools",
    "GET /v1/marketplace/ai/tools/{tool_name}",
    "GET /v1/marketplace/ai/plugins/{plugin_id}/tools",
    "POST /mcp",
    "POST /v1/ai/functions/{name}",
}
REFUSED = {
    "DELETE /v1/auth/me",
    "DELETE /v1/auth/tokens/{token_id}",
    "DELETE /v1/auth/users/{user_id}",
    "DELETE /v1/auth/users/{user_id}/tokens/{token_id}",
    "DELETE /v1/mcp/servers/{name}/credential",
    "DELETE /v1/organizations/{org_id}/management",
    "GET /v1/auth/platform-admin/claim",
    "GET /v1/auth/tokens",
    "GET /v1/auth/users/{user_id}/tokens",
    "PATCH /v1/auth/users/{user_id}/role",
    "PATCH /v1/auth/users/{user_id}/status",
    "PATCH /v1/organizations/{org_id}/members/{user_id}/account-status",
    "POST /v1/auth/change-password",
    "POST /v1/auth/logout",
    "POST /v1/auth/oidc/logout",
    "POST /v1/auth/platform-admin/claim",
    "POST /v1/auth/tokens",
    "POST /v1/auth/users/{user_id}/reset-password",
    "POST /v1/backups/{name}/restore",
    "POST /v1/invites/by-token/{token}/redeem",
    "POST /v1/organizations/switch",
    "POST /v1/organizations/{org_id}/management",
    "POST /v1/organizations/{org_id}/members/{user_id}/reset-password",
    "PUT /v1/mcp/servers/{name}/credential",
}
SCOPES = {"ask": {"ask"}, "tools": {"tools"}, "manage": {"manage"}, "all": {"ask", "tools", "manage"}}
UUID = "00000000-0000-4000-8000-000000000000"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    async with platforms(tmp_path_factory.mktemp("scopes")) as start:
        yield await start(*(candidate.name for candidate in installed()), HashEmbeddings())


def opens(label: str, scopes: set[str]) -> bool:
    """Whether a token with these scopes passes the door of a route."""
    if label in REFUSED:
        return False
    needed = {"manage"}
    if label in ASK:
        needed = {"ask", "manage"}
    elif label in EITHER:
        needed = {"ask", "tools", "manage"}
    elif label in TOOLS:
        needed = {"tools"}
    return bool(needed & scopes)


@pytest.mark.parametrize("name", SCOPES)
async def test_scope_opens_exactly_its_routes(running: Running, name: str) -> None:
    """Every route that takes a token is open to the scopes of the table, and to no other."""
    ana = await running.user()
    answer = await ana.post("/v1/auth/tokens", json={"name": name, "scopes": sorted(SCOPES[name])})
    program, wrong = Actor(running, answer.json()["token"]), []
    for endpoint in gateway_app(running.platform).endpoints:
        if endpoint.route.access.kind == "public" and not endpoint.route.access.better_with_token:
            continue
        label = f"{endpoint.route.method} {endpoint.template.openapi}"
        found = await passes(program, endpoint)
        if found != opens(label, SCOPES[name]):
            wrong.append(f"{label} is {'open' if found else 'closed'}")
    assert wrong == []


async def passes(program: Actor, endpoint: Endpoint) -> bool:
    """Whether the request got past the scopes, whatever became of it then."""
    path = endpoint.template.openapi
    for parameter, kind in endpoint.template.kinds.items():
        path = path.replace(f"{{{parameter}}}", {"int": "2147480000", "uuid": UUID}.get(kind, "x"))
    assert not re.search(r"[{}]", path)
    answer = await program.request(endpoint.route.method, path)
    return not (answer.status == 403 and answer.json()["code"] == "token_scope_missing")
