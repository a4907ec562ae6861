"""How the leak matrix addresses the victim by each route. What the answer must be is derived elsewhere.

A word that starts with `@` stands for an id of the world; `@kb`, `@document` and `@pipeline` are asked for in
each visibility.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

ANY = tuple(range(200, 500))


@dataclass(frozen=True)
class Row:
    """One route: what to send, and what the victim's thing is that it speaks of.

    `owned`: a row with an owner and a visibility is addressed, in the path or in the body; `changes` it or
    only reads it. `own`: it is the victim's alone, whatever others may. `asks`: a key that the service wants
    beside the declared access, as (key, id, whether instance administrators pass). `member_of`: only members
    of this id's organization or team may; `also_suspended`: those whose membership is suspended as well.
    `consumes`: ids that an allowed call uses up, made again for each. `control`: further statuses of an
    allowed call. `reveals`: canaries by their beginnings that the bundle or log holds for whoever may have
    it. `hides`: a stranger is told 404 rather than 403, as by a thing that has no place of its own. `ids`:
    what a path parameter stands for, where its name does not tell. `platform_admins` hold the key, too.
    `ends_session`: it addresses nobody else, and would take the actor out of all cells that follow.
    """

    body: Any = None
    query: str = ""
    owned: (
        Literal["kb", "pipeline", "job", "listing", "endpoint", "evaluation_set", "evaluation_run", "source"]
        | None
    ) = None
    changes: bool | None = None
    asks: tuple[str, str, bool] | None = None
    member_of: str | None = None
    also_suspended: bool = False
    own: bool = False
    consumes: tuple[str, ...] = ()
    control: tuple[int, ...] = ()
    reveals: tuple[str, ...] = ()
    hides: bool = False
    upload: bool = False
    raw: bytes | None = None
    ids: tuple[tuple[str, str], ...] = ()
    platform_admins: bool = False
    ends_session: bool = False


OWN = Row(control=ANY)
ORG_BUNDLE = {
    "format": "platform.organization",
    "version": 1,
    "organization": {"name": "x", "slug": "x"},
}
TEAM_BUNDLE = {"format": "platform.team", "version": 1, "team": {"name": "x"}}
RESET = {"mode": "generate"}

KERNEL = {
    "GET /": OWN,
    "GET /health": OWN,
    "GET /livez": OWN,
    "GET /readyz": OWN,
    "GET /metrics": OWN,
    "GET /.well-known/oauth-protected-resource": OWN,
    "GET /app": OWN,
    "GET /app/{view}": OWN,
    "GET /static/client/{digest}/{name}": OWN,
    "GET /.well-known/oauth-protected-resource/mcp": OWN,
    "GET /v1/mcp/servers": OWN,
    "PUT /v1/mcp/servers/{name}/credential": Row({"token": "x"}, control=ANY),
    "DELETE /v1/mcp/servers/{name}/credential": Row(control=ANY),
    "POST /mcp": Row({"jsonrpc": "2.0", "id": 1, "method": "resources/list"}, control=ANY),
    "GET /v1/status": OWN,
    "GET /v1/audit": Row(
        query="org_id=@organization&limit=500",
        asks=("org.audit.read", "organization", False),
        reveals=("",),
    ),
    "GET /v1/jobs": Row(query="limit=500"),
    "GET /v1/jobs/{job_id}": Row(owned="job"),
    "GET /v1/jobs/{job_id}/events": Row(owned="job"),
    "POST /v1/jobs/{job_id}/cancel": Row(owned="job", consumes=("job",)),
    "GET /v1/auth/capabilities": OWN,
    "POST /v1/auth/change-password": OWN,
    "POST /v1/auth/logout": Row(ends_session=True),
    "POST /v1/auth/login": OWN,
    "POST /v1/auth/refresh": OWN,
    "POST /v1/auth/first-account": Row(
        {"code": "wrong", "username": "x", "password": "long enough"}, control=ANY
    ),
    "POST /v1/auth/register": Row({"username": ""}, control=ANY),
    "POST /v1/auth/password-reset/request": OWN,
    "POST /v1/auth/password-reset/confirm": Row(
        {"token": "wrong", "new_password": "long enough"}, control=ANY
    ),
    "GET /v1/auth/platform-admin/claim": OWN,
    "POST /v1/auth/platform-admin/claim": Row({"code": "AAAAAA-AAAAAA-AAAAAA"}, control=ANY),
    "GET /v1/auth/oidc/login": OWN,
    "GET /v1/auth/oidc/callback": OWN,
    "POST /v1/auth/oidc/logout": OWN,
    "POST /v1/auth/oidc/backchannel-logout": Row(raw=b"logout_token=x", control=ANY),
    "POST /v1/auth/tokens": Row({"name": "x"}),
    "GET /v1/auth/tokens": Row(query="limit=500"),
    "DELETE /v1/auth/tokens/{token_id}": Row(own=True, consumes=("access_token",)),
    "GET /v1/auth/users/{user_id}/tokens": Row(query="limit=500", ids=(("user_id", "victim"),)),
    "DELETE /v1/auth/users/{user_id}/tokens/{token_id}": Row(
        consumes=("access_token",), ids=(("user_id", "victim"),)
    ),
    "GET /v1/auth/users": Row(
        query="org_id=@organization",
    ),
    "DELETE /v1/auth/me": Row({}, ends_session=True),
    "DELETE /v1/auth/users/{user_id}": Row(consumes=("user",)),
    "PATCH /v1/auth/users/{user_id}/role": Row({"role": "user"}, consumes=("user",)),
    "PATCH /v1/auth/users/{user_id}/status": Row({"is_active": False}, consumes=("user",)),
    "POST /v1/auth/users/{user_id}/reset-password": Row(RESET, consumes=("user",)),
}

PLUGINS = {
    "GET /v1/plugins": OWN,
    "GET /v1/plugins/ai/tools": OWN,
    "GET /v1/plugins/schema": OWN,
    "POST /v1/plugins/install": Row(raw=b"nonsense", control=ANY),
    "POST /v1/plugins/reload-webhook": Row(raw=b"nonsense", control=ANY),
    "GET /v1/plugins/{name}": OWN,
    "DELETE /v1/plugins/{name}": OWN,
    "GET /v1/plugins/{name}/health": OWN,
    "GET /v1/plugins/{name}/analysis": OWN,
    "GET /v1/plugins/{name}/collect": OWN,
    "POST /v1/plugins/{name}/collect": OWN,
    "GET /v1/plugins/{name}/actions/{action}": OWN,
    "POST /v1/plugins/{name}/actions/{action}": OWN,
    "GET /v1/plugins/{name}/config": OWN,
    "PUT /v1/plugins/{name}/config": Row(raw=b"nonsense", control=ANY),
    "POST /v1/plugins/{name}/enable": OWN,
    "POST /v1/plugins/{name}/disable": OWN,
    "POST /webhook/{path}": Row(raw=b"{}", control=ANY),
}

_LISTING = "/v1/marketplace/plugins/{plugin_id}"
_SUBMISSION = "/v1/marketplace/submissions/{plugin_id}"
_ORG_LICENSES = "/v1/marketplace/organizations/{org_id}/licenses"
_KEY = {"license_key": "AAAA-AAAA-AAAA-AAAA", "plugin_id": "@listing"}
_UNSEEN = Row(control=(404,))
_HIDDEN = Row(owned="listing", control=ANY)
MARKETPLACE = {
    "GET /v1/marketplace/plugins": Row(query="limit=100&status=draft"),
    "GET /v1/marketplace/plugins/search": Row(query="q=canary&limit=100"),
    "GET /v1/marketplace/plugins/featured": OWN,
    "POST /v1/marketplace/plugins": Row({"name": "@fresh", "display_name": "x", "author": "x"}),
    f"GET {_LISTING}": _UNSEEN,
    f"PUT {_LISTING}": Row({"description": "x"}, owned="listing", consumes=("listing",)),
    f"POST {_LISTING}/install": _HIDDEN,
    f"DELETE {_LISTING}/uninstall": _HIDDEN,
    f"POST {_LISTING}/enable": _HIDDEN,
    f"POST {_LISTING}/disable": _HIDDEN,
    f"GET {_LISTING}/installations": OWN,
    f"GET {_LISTING}/ratings": _UNSEEN,
    f"POST {_LISTING}/ratings": Row({"rating": 3}, owned="listing", changes=False, control=ANY),
    f"POST {_LISTING}/checkout": Row({"tier": "pro"}, owned="listing", control=ANY),
    "GET /v1/marketplace/installations/me": Row(),
    "GET /v1/marketplace/categories": OWN,
    "POST /v1/marketplace/categories": Row({"name": "x", "slug": "@fresh"}),
    "DELETE /v1/marketplace/categories/{category_id}": _UNSEEN,
    "GET /v1/marketplace/submissions": Row(query="limit=100&status=draft"),
    "GET /v1/marketplace/submissions/mine": Row(query="limit=100"),
    f"GET {_SUBMISSION}/history": Row(owned="listing"),
    f"POST {_SUBMISSION}/package": Row(raw=b"nonsense", owned="listing", control=ANY),
    f"POST {_SUBMISSION}/submit": Row(owned="listing", consumes=("listing",)),
    f"POST {_SUBMISSION}/claim": Row(control=ANY, consumes=("listing",)),
    f"POST {_SUBMISSION}/approve": Row(control=ANY, consumes=("listing",)),
    f"POST {_SUBMISSION}/reject": Row({"notes": "x"}, control=ANY, consumes=("listing",)),
    f"POST {_SUBMISSION}/archive": Row(control=ANY, consumes=("listing",)),
}
_SYNC = {"plugin_name": "x", "plugin_id": "@listing", "manifest": {"ai_tools": []}}
TOOLS = {
    "GET /v1/tools": Row(query="limit=500&active_only=false"),
    "GET /v1/tools/{tool_name}": _UNSEEN,
    "GET /v1/tools/plugins/{plugin_id}/tools": _UNSEEN,
    "POST /v1/tools/{tool_name}/execute": Row({"parameters": {}}, control=(404,)),
    "POST /v1/tools/validate": Row({"user_id": "1", "tool_name": "x"}, control=(403,)),
    "GET /v1/marketplace/ai/tools": Row(query="limit=500&active_only=false"),
    "GET /v1/marketplace/ai/tools/{tool_name}": _UNSEEN,
    "GET /v1/marketplace/ai/plugins/{plugin_id}/tools": _UNSEEN,
    "DELETE /v1/marketplace/ai/plugins/{plugin_id}/tools": OWN,
    "POST /v1/marketplace/ai/sync": Row(_SYNC, owned="listing"),
}
_EDGE = "plugin_id=@fresh&depends_on=@listing"
GRAPH = {
    "GET /v1/graph/dependencies/{plugin_id}": OWN,
    "POST /v1/graph/dependencies": Row(query=_EDGE),
    "DELETE /v1/graph/dependencies": Row(query=_EDGE, control=(404,)),
    "GET /v1/graph/conflicts/{plugin_id}": OWN,
    "POST /v1/graph/recommendations": Row(["@listing"]),
    "GET /v1/graph/bundles/{bundle}/required": OWN,
    "GET /v1/graph/health": OWN,
}
LICENSING = {
    "GET /v1/marketplace/licenses": Row(),
    "GET /v1/marketplace/licenses/lookup": Row(query="user_id=@victim&plugin_id=@listing"),
    "POST /v1/marketplace/licenses/validate": Row(_KEY),
    "POST /v1/marketplace/licenses/activate": Row({"plugin_id": "@listing", "tier": "free"}, control=ANY),
    "POST /v1/marketplace/licenses/{license_id}/key": _UNSEEN,
    "POST /v1/marketplace/checkout/{provider}/notices": Row(raw=b"{}", control=ANY),
    f"GET {_ORG_LICENSES}": Row(),
    f"GET {_ORG_LICENSES}/{{license_id}}/seats": Row(),
    f"PUT {_ORG_LICENSES}/{{license_id}}/seats/{{user_id}}": Row(),
    f"DELETE {_ORG_LICENSES}/{{license_id}}/seats/{{user_id}}": Row(),
    "GET /v1/bundles": OWN,
    "GET /v1/bundles/ready": OWN,
    "POST /v1/bundles/reconcile": OWN,
    "POST /v1/bundles/{name}/enable": Row(control=(404,)),
    "POST /v1/bundles/{name}/disable": Row(control=(404,)),
    "GET /v1/containers/{name}/logs": Row(control=(404,)),
    "GET /v1/backups": OWN,
    "GET /v1/settings": OWN,
    "POST /v1/backups": Row(),
    "GET /v1/backups/jobs": OWN,
    "GET /v1/backups/jobs/{job_id}": Row(control=(404,)),
    "POST /v1/backups/{name}/drill": Row(control=(404,)),
    "POST /v1/backups/{name}/restore": Row({"confirm_filename": "x"}, control=(404,)),
    "GET /v1/licensing/plugins/{name}/license/tier": OWN,
    "POST /v1/licensing/plugins/{name}/license/validate": Row({}),
    "PATCH /v1/licensing/plugins/{name}/license": Row({"license_tier": "free"}, control=(404,)),
}

_BASE = Row(owned="kb")
_BASES = {
    "GET ": Row(query="limit=500"),
    "POST ": Row({"name": "x"}),
    "GET /{kb_id}": _BASE,
    "PATCH /{kb_id}": Row({"description": "x"}, owned="kb", consumes=("kb",)),
    "DELETE /{kb_id}": Row(owned="kb", consumes=("kb",)),
    "GET /{kb_id}/documents": _BASE,
    "GET /{kb_id}/documents/{document_id}": _BASE,
    "DELETE /{kb_id}/documents/{document_id}": Row(owned="kb", consumes=("document",)),
    "GET /{kb_id}/documents/{document_id}/chunks": _BASE,
    "GET /{kb_id}/documents/{document_id}/content": _BASE,
    "GET /{kb_id}/documents/{document_id}/versions": _BASE,
    "POST /{kb_id}/documents/{document_id}/restore": Row(owned="kb", changes=True),
    "GET /{kb_id}/trash": Row(owned="kb", changes=True),
    "POST /{kb_id}/trash/{document_id}/restore": Row(owned="kb", changes=True, control=(404,)),
    "DELETE /{kb_id}/trash/{document_id}": Row(owned="kb", changes=True, control=(404,)),
    "GET /{kb_id}/documents/by-path/{path}": Row(owned="kb", control=(404,)),
    "PUT /{kb_id}/documents/by-path/{path}": Row(owned="kb", upload=True, consumes=("kb",)),
    "POST /{kb_id}/reembed": Row({"embedding_model": "all-minilm"}, owned="kb", consumes=("kb",)),
    "POST /{kb_id}/search": Row({"question": "What is the treasure?"}, owned="kb", changes=False),
    "POST /{kb_id}/trees": Row({}, owned="kb", consumes=("kb",)),
    "POST /{kb_id}/upload": Row(owned="kb", upload=True, consumes=("kb",)),
}

_OIKB = "/v1/rag/oikb/api/v1"
RAG = {
    f"GET {_OIKB}/knowledge/{{kb_id}}": Row(owned="kb"),
    f"GET {_OIKB}/knowledge/{{kb_id}}/files": Row(owned="kb"),
    f"POST {_OIKB}/knowledge/{{kb_id}}/sync/diff": Row({"manifest": []}, owned="kb", changes=True),
    f"POST {_OIKB}/knowledge/{{kb_id}}/sync/cleanup": Row({"file_ids": []}, owned="kb", changes=True),
    f"POST {_OIKB}/knowledge/{{kb_id}}/dirs/create": Row({"name": "x"}, owned="kb", changes=True),
    f"POST {_OIKB}/knowledge/{{kb_id}}/reset": Row(owned="kb", changes=True),
    f"POST {_OIKB}/files/": Row(upload=True, control=(422,)),
    "GET /v1/rag": OWN,
    "GET /v1/rag/capabilities": OWN,
    "GET /v1/rag/usage": OWN,
    "GET /v1/rag/documents": Row(query="q=canary"),
    "GET /v1/rag/figures": OWN,
    "GET /v1/rag/knowledge-bases/trash": OWN,
    "POST /v1/rag/knowledge-bases/trash": Row({"knowledge_base_id": "@kb"}, owned="kb", consumes=("kb",)),
    "POST /v1/rag/knowledge-bases/trash/{kb_id}/restore": OWN,
    "DELETE /v1/rag/knowledge-bases/trash/{kb_id}": OWN,
    "GET /v1/rag/decision-stats": OWN,
    "POST /v1/rag/initialize": OWN,
    **{
        f"{method} /v1/rag/{name}{rest}": row
        for name in ("knowledge-bases", "knowledge-base")
        for (method, rest), row in ((key.split(" "), row) for key, row in _BASES.items())
    },
    "GET /v1/rag/knowledge-bases/{kb_id}/export": Row(owned="kb", changes=True, control=(409,)),
    "GET /v1/rag/knowledge-bases/{kb_id}/topics": _BASE,
    "GET /v1/rag/knowledge-bases/{kb_id}/sight": Row(query="user_id=@victim", owned="kb", changes=True),
    "POST /v1/rag/knowledge-bases/import": Row(upload=True, control=(422,)),
    "GET /v1/rag/knowledge-bases/{kb_id}/fields": _BASE,
    "GET /v1/rag/knowledge-bases/{kb_id}/fields/{name}": Row(owned="kb", control=(404,)),
    "PUT /v1/rag/knowledge-bases/{kb_id}/fields/{name}": Row({"kind": "text"}, owned="kb", consumes=("kb",)),
    "DELETE /v1/rag/knowledge-bases/{kb_id}/fields/{name}": Row(owned="kb", changes=True, control=(404,)),
    "GET /v1/rag/knowledge-bases/{kb_id}/metadata-rules": _BASE,
    "PUT /v1/rag/knowledge-bases/{kb_id}/metadata-rules": Row({"rules": []}, owned="kb", consumes=("kb",)),
    "GET /v1/rag/knowledge-bases/{kb_id}/metadata.csv": _BASE,
    "PUT /v1/rag/knowledge-bases/{kb_id}/metadata.csv": Row(owned="kb", changes=True, control=(415, 422)),
    "GET /v1/rag/knowledge-bases/{kb_id}/documents/{document_id}/metadata": _BASE,
    "PATCH /v1/rag/knowledge-bases/{kb_id}/documents/{document_id}/metadata": Row(
        {"title": None}, owned="kb", changes=True
    ),
    "POST /v1/rag/knowledge-bases/{kb_id}/documents/metadata": Row(
        {"document_ids": ["@document"]}, owned="kb", changes=True
    ),
    "POST /v1/rag/knowledge-bases/{kb_id}/facets": Row(
        {"fields": ["filename", "title"]}, owned="kb", changes=False
    ),
    "GET /v1/rag/knowledge-bases/{kb_id}/ingestion": _BASE,
    "POST /v1/rag/knowledge-bases/{kb_id}/ingestion/cancel": Row(owned="kb", consumes=("kb",)),
    "POST /v1/rag/knowledge-bases/{kb_id}/ingestion/retry": Row(owned="kb", consumes=("kb",)),
    "GET /v1/rag/pipeline": Row(query="limit=500"),
    "POST /v1/rag/dify/retrieval": Row(
        {"knowledge_id": "@kb", "query": "What is the treasure?"}, owned="kb", changes=False
    ),
    "POST /v1/rag/pipeline": Row({"name": "x", "knowledge_base_ids": ["@kb"]}, owned="kb", changes=False),
    "GET /v1/rag/pipeline/{pipeline_id}": Row(owned="pipeline"),
    "PATCH /v1/rag/pipeline/{pipeline_id}": Row(
        {"visibility": "private"}, owned="pipeline", consumes=("pipeline",)
    ),
    "DELETE /v1/rag/pipeline/{pipeline_id}": Row(owned="pipeline", consumes=("pipeline",)),
    "POST /v1/rag/pipeline/{pipeline_id}/facets": Row(
        {"fields": ["filename", "title"]}, owned="pipeline", changes=False
    ),
    "POST /v1/rag/pipeline/{pipeline_id}/search": Row(
        {"question": "What is the treasure?"}, owned="pipeline", changes=False
    ),
    "POST /v1/rag/pipeline/{pipeline_id}/query": Row(
        {"question": "What is the treasure?", "hybrid": True}, owned="pipeline", changes=False
    ),
}

GRAPH_RAG = {
    "POST /v1/graph-rag/extract": Row({"text": "Senja"}),
    "POST /v1/graph-rag/construct-graph": Row({"document_id": "@fresh", "text": "An island."}),
    "POST /v1/graph-rag/retrieve": Row({"query": "What is in Senja?", "limit": 100}),
    "POST /v1/graph-rag/entity-context": Row({"entity_text": "Senja", "context_window": 10}, control=(404,)),
    "POST /v1/graph-rag/graph/search": Row({"query": "canary", "limit": 50}),
    "POST /v1/graph-rag/graph/correlate": Row({"entity": "Senja", "limit": 100}, control=(404,)),
    "GET /v1/graph-rag/graph/correlations": Row(query="limit=100"),
    "POST /v1/graph-rag/overview": Row({}),
    "POST /v1/graph-rag/sparql": Row(
        {"query": "SELECT * WHERE { ?entity <http://www.w3.org/2004/02/skos/core#prefLabel> ?name }"}
    ),
    "GET /v1/graph-rag/graph/export": Row(control=(404,)),
    "POST /v1/graph-rag/graph/import": Row({"document_id": "@fresh", "content": "<urn:a> <urn:b> <urn:c> ."}),
    "GET /v1/graph-rag/graph/stats": OWN,
    "GET /v1/graph-rag/graph/network": Row(query="limit=2000"),
    "GET /v1/graph-rag/graph/documents": Row(query="limit=500"),
    "DELETE /v1/graph-rag/graph/document/{document_id}": Row(control=(409,)),
}

_TALK = "/v1/conversations/{conversation_id}"
_SHARING = "/v1/rag/pipeline/{pipeline_id}/conversations/{conversation_id}/share"
_MY_TALK = Row(own=True, consumes=("conversation",))
_SHARED_TALK = Row(owned="pipeline", changes=False, own=True, consumes=("shared_conversation",))
CONVERSATIONS = {
    "GET /v1/conversations/mine": Row(query="limit=100"),
    "DELETE /v1/conversations/mine": Row(),
    "GET /v1/conversations/shared-with-me": Row(query="limit=100"),
    "GET /v1/conversations/mine/export": Row(),
    f"GET {_TALK}": _MY_TALK,
    f"GET {_TALK}/turns": _MY_TALK,
    f"GET {_TALK}/export": _MY_TALK,
    f"PUT {_TALK}/turns/{{turn_id}}/rating": Row(
        {"rating": "up"}, own=True, consumes=("conversation",), control=(404,)
    ),
    f"PATCH {_TALK}": Row({"title": "x"}, own=True, consumes=("conversation",)),
    f"DELETE {_TALK}": _MY_TALK,
    "GET /v1/rag/pipeline/{pipeline_id}/conversations": Row(owned="pipeline", query="limit=100"),
    f"POST {_SHARING}": _SHARED_TALK,
    f"DELETE {_SHARING}": _SHARED_TALK,
}

_ENDPOINT = "/v1/rag/endpoints/{endpoint_id}"
_CHAT_SESSION = f"{_ENDPOINT}/sessions/{{session_id}}"
_BASE_CHATS = "/v1/rag/knowledge-bases/{kb_id}/chats"
_ONE_ENDPOINT = Row(owned="endpoint")
_VISIT = Row(control=ANY)
PUBLISHED = {
    "GET /v1/rag/endpoints": Row(query="limit=500"),
    "POST /v1/rag/endpoints": Row(
        {"name": "x", "slug": "@fresh", "pipeline_id": "@pipeline"}, owned="pipeline", changes=True
    ),
    f"GET {_ENDPOINT}": _ONE_ENDPOINT,
    f"PATCH {_ENDPOINT}": Row({"enabled": True}, owned="endpoint", consumes=("endpoint",)),
    f"DELETE {_ENDPOINT}": Row(owned="endpoint", consumes=("endpoint",)),
    f"GET {_ENDPOINT}/sessions": _ONE_ENDPOINT,
    f"GET {_CHAT_SESSION}/turns": _ONE_ENDPOINT,
    f"DELETE {_CHAT_SESSION}": Row(owned="endpoint", consumes=("endpoint",)),
    f"GET {_ENDPOINT}/feedback": _ONE_ENDPOINT,
    f"GET {_ENDPOINT}/figures": _ONE_ENDPOINT,
    f"GET {_BASE_CHATS}": Row(owned="kb", changes=True, query="limit=500"),
    f"DELETE {_BASE_CHATS}/{{endpoint_id}}": Row(owned="kb", changes=True, control=(404,)),
    "GET /v1/chat/{slug}": _VISIT,
    "POST /v1/chat/{slug}/session": _VISIT,
    "POST /v1/chat/{slug}/messages": Row({"question": "What is the treasure?"}, control=ANY),
    "POST /v1/chat/{slug}/feedback": Row({"turn_id": 1, "rating": "up"}, control=ANY),
    "GET /v1/chat/{slug}/widget.js": _VISIT,
}

_SET = "/v1/rag/evaluation/sets/{set_id}"
_RUN = "/v1/rag/evaluation/runs/{run_id}"
_ONE_SET, _ONE_RUN = Row(owned="evaluation_set"), Row(owned="evaluation_run")
EVALUATION = {
    "GET /v1/rag/evaluation/sets": Row(query="limit=500"),
    "POST /v1/rag/evaluation/sets": Row({"knowledge_base_id": "@kb", "name": "x"}, owned="kb", changes=True),
    f"GET {_SET}": _ONE_SET,
    f"GET {_SET}/questions": _ONE_SET,
    f"DELETE {_SET}": Row(owned="evaluation_set", consumes=("evaluation_set",)),
    f"DELETE {_SET}/questions/{{question_id}}": Row(owned="evaluation_set", consumes=("evaluation_set",)),
    f"POST {_SET}/upload": Row(
        owned="evaluation_set", raw=b'{"question": "Why?", "unanswerable": true}', control=(415,)
    ),
    f"POST {_SET}/generate": Row({"limit": 1}, owned="evaluation_set"),
    f"GET {_SET}/candidates": Row(owned="evaluation_set", changes=True),
    f"POST {_SET}/candidates": Row(
        {"candidates": [{"turn_id": 1, "unanswerable": True}]}, owned="evaluation_set", control=(404,)
    ),
    "GET /v1/rag/evaluation/runs": Row(query="limit=500"),
    "POST /v1/rag/evaluation/runs": Row({"set_id": "@evaluation_set"}, owned="evaluation_set"),
    f"GET {_RUN}": _ONE_RUN,
    f"GET {_RUN}/results": _ONE_RUN,
    f"GET {_RUN}/comparison": Row(query="with=@evaluation_run", owned="evaluation_run"),
    f"GET {_RUN}/table.md": _ONE_RUN,
    f"GET {_RUN}/plot.svg": _ONE_RUN,
    f"DELETE {_RUN}": Row(owned="evaluation_run", consumes=("evaluation_set",)),
}

_SOURCE = "/v1/rag/sources/{source_id}"
_BASE_SOURCES = "/v1/rag/knowledge-bases/{kb_id}/sources"
_ONE_SOURCE = Row(owned="source", changes=True)
_NEW_SOURCE = {"kind": "folder", "settings": {"path": "/nowhere"}}
SOURCES = {
    "GET /v1/rag/source-kinds": OWN,
    f"GET {_BASE_SOURCES}": Row(owned="kb", changes=True),
    f"POST {_BASE_SOURCES}": Row({**_NEW_SOURCE, "name": "x"}, owned="kb", consumes=("kb",)),
    f"POST {_BASE_SOURCES}/test": Row(_NEW_SOURCE, owned="kb"),
    f"GET {_SOURCE}": _ONE_SOURCE,
    f"PATCH {_SOURCE}": Row({"schedule": None}, owned="source", consumes=("kb", "source")),
    f"DELETE {_SOURCE}": Row(query="documents=delete", owned="source", consumes=("kb", "source")),
    f"POST {_SOURCE}/test": _ONE_SOURCE,
    f"POST {_SOURCE}/run": Row({}, owned="source"),
    f"POST {_SOURCE}/confirm": Row(owned="source", control=(409,)),
    f"GET {_SOURCE}/runs": _ONE_SOURCE,
    f"GET {_SOURCE}/items": _ONE_SOURCE,
    f"POST {_SOURCE}/push-address": Row(owned="source", consumes=("kb", "source")),
    "POST /v1/rag/source-pushes/{token}": Row(control=ANY),
    "GET /v1/rag/knowledge-bases/{kb_id}/documents/{document_id}/difference": Row(owned="kb", control=(409,)),
    "GET /v1/rag/knowledge-bases/{kb_id}/documents/{document_id}/preview": Row(owned="kb", control=(422,)),
    "GET /v1/rag/knowledge-bases/{kb_id}/contradictions": Row(owned="kb"),
    "POST /v1/rag/knowledge-bases/{kb_id}/contradictions": Row(owned="kb", changes=True),
    "GET /v1/rag/knowledge-bases/{kb_id}/documents/{document_id}/origin": Row(owned="kb", control=(404,)),
    "GET /v1/rag/knowledge-bases/{kb_id}/documents/{document_id}/readers": Row(owned="kb", changes=True),
    f"GET {_SOURCE}/rights": _ONE_SOURCE,
    f"GET {_SOURCE}/principals": _ONE_SOURCE,
    f"GET {_SOURCE}/counterparts": _ONE_SOURCE,
    f"PUT {_SOURCE}/counterparts": Row({"items": []}, owned="source"),
}

_TEAM_KEY = ("team.manage", "team", True)
TEAMS = {
    "POST /v1/teams": Row({"name": "@fresh", "organization_id": "@organization"}, member_of="organization"),
    "GET /v1/teams": Row(query="limit=500"),
    "GET /v1/teams/{team_id}": Row(),
    "GET /v1/teams/{team_id}/members": Row(),
    "PATCH /v1/teams/{team_id}": Row({"description": "x"}, consumes=("team",)),
    "DELETE /v1/teams/{team_id}": Row(consumes=("team",)),
    "POST /v1/teams/{team_id}/members": Row({"user_id": "@newcomer"}, consumes=("newcomer",)),
    "PATCH /v1/teams/{team_id}/members/{user_id}": Row({"team_role": "member"}, consumes=("user",)),
    "DELETE /v1/teams/{team_id}/members/{user_id}": Row(asks=_TEAM_KEY, consumes=("user",)),
    "GET /v1/teams/{team_id}/export": Row(
        reveals=("kb-name-team", "kb-description-team", "pipeline-name-team", "email")
    ),
    "POST /v1/teams/{team_id}/import": Row({"bundle": TEAM_BUNDLE}),
    "POST /v1/invites": Row({"email": "@fresh_email", "team_id": "@team"}, asks=_TEAM_KEY),
    "POST /v1/invites/bulk": Row({"emails": ["@fresh_email"], "team_id": "@team"}, asks=_TEAM_KEY),
    "GET /v1/invites": Row(query="team_id=@team&limit=500", asks=_TEAM_KEY),
    "POST /v1/invites/{invite_id}/revoke": Row(
        asks=_TEAM_KEY, consumes=("team_invite",), hides=True, ids=(("invite_id", "team_invite"),)
    ),
    "GET /v1/invites/by-token/{token}": OWN,
    "POST /v1/invites/by-token/{token}/redeem": OWN,
}

_MEMBER = "/v1/organizations/{org_id}/members/{user_id}"
_MANAGEMENT = "/v1/organizations/{org_id}/management"
_ROLES = "/v1/organizations/{org_id}/roles"
_GROUPS = "/v1/organizations/{org_id}/permission-groups"
_OF_OTHERS = ("org.members.manage", "organization", False)
_SETTINGS = ("org.settings.manage", "organization", True)
ORGANIZATIONS = {
    "POST /v1/organizations": Row(
        {"name": "x", "slug": "@fresh", "parent_id": "@organization"}, asks=_SETTINGS
    ),
    "GET /v1/organizations": Row(query="limit=500", platform_admins=True),
    "GET /v1/organizations/mine": Row(),
    "POST /v1/organizations/switch": Row({"organization_id": "@organization"}, member_of="organization"),
    "GET /v1/organizations/{org_id}": Row(),
    "PATCH /v1/organizations/{org_id}": Row({"name": "@org_name"}),
    "GET /v1/organizations/{org_id}/organizations": Row(query="limit=500"),
    "GET /v1/organizations/{org_id}/export": Row(
        reveals=("kb-name-organization", "kb-description-organization", "pipeline-name-organization")
    ),
    "POST /v1/organizations/{org_id}/import": Row({"bundle": ORG_BUNDLE}),
    "GET /v1/organizations/{org_id}/invites": Row(query="limit=500"),
    "POST /v1/organizations/{org_id}/invites": Row({"email": "@fresh_email"}),
    "POST /v1/organizations/{org_id}/invites/bulk": Row({"emails": ["@fresh_email"]}),
    "POST /v1/organizations/{org_id}/invites/{invite_id}/revoke": Row(
        consumes=("org_invite",), ids=(("invite_id", "org_invite"),)
    ),
    "GET /v1/organizations/{org_id}/members": Row(query="limit=500"),
    "POST /v1/organizations/{org_id}/members": Row({"user_id": "@user", "org_role": "member"}),
    f"DELETE {_MEMBER}": Row(consumes=("user",)),
    f"PUT {_MEMBER}/suspension": Row(consumes=("user",)),
    f"DELETE {_MEMBER}/suspension": Row(consumes=("user",)),
    f"POST {_MEMBER}/reset-password": Row(RESET, consumes=("user",)),
    f"PATCH {_MEMBER}/account-status": Row({"is_active": False}, consumes=("user",)),
    f"POST {_MANAGEMENT}": Row(member_of="organization"),
    f"DELETE {_MANAGEMENT}": Row(member_of="organization", also_suspended=True),
    f"GET {_MEMBER}/effective-permissions": Row(asks=_OF_OTHERS),
    f"GET {_MEMBER}/roles": Row(asks=_OF_OTHERS),
    f"POST {_MEMBER}/roles": Row({"role_id": "@role"}),
    f"DELETE {_MEMBER}/roles/{{role_id}}": Row(consumes=("assignment",)),
    "POST /v1/organizations/{org_id}/members/bulk-roles": Row({"user_ids": ["@user"], "role_id": "@role"}),
    f"GET {_ROLES}": Row(query="limit=500"),
    f"POST {_ROLES}": Row({"name": "@fresh", "permissions": ["org.view"]}),
    f"GET {_ROLES}/{{role_id}}": Row(),
    f"PATCH {_ROLES}/{{role_id}}": Row({"description": "x"}, consumes=("role",)),
    f"DELETE {_ROLES}/{{role_id}}": Row(consumes=("role",)),
    f"GET {_GROUPS}": Row(query="limit=500"),
    f"POST {_GROUPS}": Row({"name": "@fresh", "permissions": ["org.view"]}),
    f"GET {_GROUPS}/{{group_id}}": Row(),
    f"PATCH {_GROUPS}/{{group_id}}": Row({"description": "x"}, consumes=("group",)),
    f"DELETE {_GROUPS}/{{group_id}}": Row(consumes=("group",)),
    f"GET {_GROUPS}/{{group_id}}/children": Row(query="limit=500"),
    f"POST {_GROUPS}/{{group_id}}/children": Row({"child_group_id": "@child_group"}),
    f"DELETE {_GROUPS}/{{group_id}}/children/{{child_group_id}}": Row(consumes=("nesting",)),
    "GET /v1/permissions": OWN,
}

_CHAT = Row(
    {"model": "pipeline/@pipeline", "messages": [{"role": "user", "content": "What is the treasure?"}]},
    owned="pipeline",
    changes=False,
)
_RESPONSE = Row(
    {"model": "pipeline/@pipeline", "input": "What is the treasure?"}, owned="pipeline", changes=False
)
_EMBEDDING = Row({"model": "all-minilm", "input": "x"}, control=ANY)
ORCHESTRATOR = {
    "GET /v1/ai/functions/definitions": Row(),
    "POST /v1/ai/functions/{name}": OWN,
    "GET /v1/ai/tools/openapi.json": OWN,
    "GET /v1/ai/tools/v1/plugins/{plugin}/actions/{action}": OWN,
    "POST /v1/ai/chat/completions": _CHAT,
    "POST /v1/chat/completions": _CHAT,
    "POST /v1/ai/responses": _RESPONSE,
    "POST /v1/responses": _RESPONSE,
    "GET /v1/ai/models": Row(),
    "GET /v1/ai/models/{model}": OWN,
    "POST /v1/ai/embeddings": _EMBEDDING,
    "POST /v1/embeddings": _EMBEDDING,
}

_STORE, _STORE_FILE = "vector_stores/{vector_store_id}", "vector_stores/{vector_store_id}/files/{file_id}"
_STORE_BATCH = "vector_stores/{vector_store_id}/file_batches/{batch_id}"
OPENAI_FILES = {
    f"{method} {base}/{rest}": row
    for base in ("/v1", "/v1/ai")
    for (method, rest), row in (
        (("POST", "files"), Row(upload=True, control=(422,))),
        (("GET", "files"), Row(query="limit=500")),
        (("GET", "files/{file_id}"), Row(owned="kb")),
        (("GET", "files/{file_id}/content"), Row(owned="kb")),
        (("DELETE", "files/{file_id}"), OWN),
        (("POST", "vector_stores"), Row({"name": "x"})),
        (("GET", "vector_stores"), Row(query="limit=100")),
        (("GET", _STORE), Row(owned="kb")),
        (("POST", _STORE), Row({"metadata": {}}, owned="kb", changes=True)),
        (("DELETE", _STORE), Row(owned="kb", consumes=("kb",), control=(409,))),
        (("POST", f"{_STORE}/search"), Row({"query": "What is the treasure?"}, owned="kb", changes=False)),
        (("GET", f"{_STORE}/files"), Row(owned="kb")),
        (("POST", f"{_STORE}/files"), Row({"file_id": "@unknown"}, owned="kb", changes=True, control=(404,))),
        (("GET", _STORE_FILE), Row(owned="kb")),
        (("POST", _STORE_FILE), Row({"attributes": {}}, owned="kb", changes=True)),
        (("DELETE", _STORE_FILE), Row(owned="kb", consumes=("document",))),
        (("GET", f"{_STORE_FILE}/content"), Row(owned="kb")),
        (
            ("POST", f"{_STORE}/file_batches"),
            Row({"file_ids": ["@unknown"]}, owned="kb", changes=True, control=(422,)),
        ),
        (("GET", _STORE_BATCH), Row(owned="kb", control=(404,))),
        (("POST", f"{_STORE_BATCH}/cancel"), Row(owned="kb", changes=True, control=(404,))),
        (("GET", f"{_STORE_BATCH}/files"), Row(owned="kb", control=(404,))),
    )
}

MODELS = {
    "GET /v1/models": OWN,
    "POST /v1/models": Row({"model_id": "small"}, control=(503,)),
    "GET /v1/models/{model_id}": OWN,
    "DELETE /v1/models/{model_id}": Row(control=ANY),
    "POST /v1/models/{model_id}/test": Row({}, control=ANY),
    "POST /v1/models/{model_id}/constraints": Row({}, control=ANY),
    "GET /v1/models/{model_id}/constraints": OWN,
    "GET /v1/models/{model_id}/metrics": OWN,
    "POST /v1/models/fine-tune": Row({"base_model": "small"}, control=(501,)),
    "GET /v1/models/choices": OWN,
    "GET /v1/models/defaults": OWN,
    "PUT /v1/models/defaults": Row({"answers": None, "helpers": None}),
    "GET /v1/models/connections": OWN,
    "GET /v1/models/connections/nearby": OWN,
    "POST /v1/models/connections/test": Row({"url": "http://127.0.0.1:9"}, control=(400,)),
    "PUT /v1/models/connections/{name}": Row(
        {"url": "http://127.0.0.1:9"}, control=(400,), ids=(("name", "gpu"),)
    ),
    "POST /v1/models/connections/{name}/test": Row(control=ANY, ids=(("name", "gpu"),)),
    "DELETE /v1/models/connections/{name}": Row(control=ANY, ids=(("name", "gpu"),)),
    "GET /v1/models/pulls": OWN,
    "GET /v1/models/pulls/{pull_id}": OWN,
    "GET /v1/models/pulls/{pull_id}/events": OWN,
    "DELETE /v1/models/pulls/{pull_id}": Row(control=ANY),
}

SPEECH = {
    "POST /v1/tts": Row({"text": "Hi", "language": "en"}, control=ANY),
    "GET /v1/tts/languages": OWN,
    "GET /v1/tts/voices": OWN,
    "POST /v1/stt": Row(upload=True, control=(503,)),
    "GET /v1/stt/languages": OWN,
    "POST /v1/ai/audio/speech": Row({"input": "Hi"}, control=ANY),
    "POST /v1/ai/audio/transcriptions": Row(upload=True, control=(503,)),
}

ROWS: dict[str, Row] = {
    **MODELS,
    **SPEECH,
    **KERNEL,
    **PLUGINS,
    **MARKETPLACE,
    **GRAPH,
    **TOOLS,
    **LICENSING,
    **RAG,
    **GRAPH_RAG,
    **CONVERSATIONS,
    **PUBLISHED,
    **EVALUATION,
    **SOURCES,
    **TEAMS,
    **ORGANIZATIONS,
    **ORCHESTRATOR,
    **OPENAI_FILES,
}

# What a path parameter stands for.
PARAMETERS = {
    "kb_id": "kb",
    "document_id": "document",
    "vector_store_id": "kb",
    "file_id": "document",
    "batch_id": "unknown",
    "pipeline_id": "pipeline",
    "job_id": "job",
    "conversation_id": "conversation",
    "endpoint_id": "endpoint",
    "set_id": "evaluation_set",
    "run_id": "evaluation_run",
    "source_id": "source",
    "question_id": "question",
    "turn_id": "question",
    "session_id": "chat_session",
    "slug": "unknown",
    "team_id": "team",
    "org_id": "organization",
    "user_id": "user",
    "token_id": "access_token",
    "role_id": "role",
    "group_id": "group",
    "child_group_id": "child_group",
    "plugin_id": "listing",
    "category_id": "listing",
    "license_id": "license",
    "provider": "unknown",
    "bundle": "unknown",
    "tool_name": "unknown",
    "model_id": "unknown",
    "pull_id": "unknown",
    "name": "unknown",
    "action": "unknown",
    "model": "unknown",
    "plugin": "unknown",
    "path": "unknown",
    "token": "unknown",
}

_SHARE_TEAM = {"name": "x", "visibility": "team", "team_id": "@team"}
_SHARE_ORG = {"name": "x", "visibility": "organization", "organization_id": "@organization"}

# Further ways by which a body speaks of the victim's team or organization.
_FILE_SEARCH = Row(
    {
        "model": "small",
        "input": "What is the treasure?",
        "tools": [{"type": "file_search", "vector_store_ids": ["@kb"]}],
    },
    owned="kb",
    changes=False,
)
MORE: tuple[tuple[str, Row], ...] = (
    ("POST /v1/rag/knowledge-bases", Row(_SHARE_TEAM, member_of="team")),
    ("POST /v1/rag/knowledge-bases", Row(_SHARE_ORG, member_of="organization")),
    ("GET /v1/rag/knowledge-bases", Row(query="limit=500&owner_id=@victim")),
    ("GET /v1/rag/pipeline", Row(query="limit=500&owner_user_id=@victim")),
    (
        "POST /v1/rag/pipeline/{pipeline_id}/query",
        Row({"question": "And there?", "conversation_id": "@conversation"}, owned="pipeline", changes=False),
    ),
    *((route, _FILE_SEARCH) for route in ("POST /v1/responses", "POST /v1/ai/responses")),
)

# An owner of another organization, at home there, speaks of the victim's things: as of unknown ones.
_OTHER = (("org_id", "other_organization"),)
_OTHER_GROUP = (*_OTHER, ("group_id", "other_group"))
CROSSED: tuple[tuple[str, Row], ...] = (
    ("GET /v1/rag/knowledge-bases/{kb_id}/documents/{document_id}", Row(ids=(("kb_id", "other_kb"),))),
    ("GET /v1/rag/knowledge-bases/{kb_id}/documents/{document_id}/chunks", Row(ids=(("kb_id", "other_kb"),))),
    (
        "GET /v1/rag/knowledge-bases/{kb_id}/documents/{document_id}/content",
        Row(ids=(("kb_id", "other_kb"),)),
    ),
    ("DELETE /v1/rag/knowledge-bases/{kb_id}/documents/{document_id}", Row(ids=(("kb_id", "other_kb"),))),
    ("POST /v1/rag/pipeline", Row({"name": "x", "knowledge_base_ids": ["@other_kb", "@kb"]})),
    ("GET /v1/organizations/{org_id}/roles/{role_id}", Row(ids=_OTHER)),
    ("PATCH /v1/organizations/{org_id}/roles/{role_id}", Row({"description": "x"}, ids=_OTHER)),
    ("DELETE /v1/organizations/{org_id}/roles/{role_id}", Row(ids=_OTHER)),
    (
        "POST /v1/organizations/{org_id}/roles",
        Row({"name": "@fresh", "permission_group_ids": ["@group"]}, ids=_OTHER),
    ),
    ("GET /v1/organizations/{org_id}/permission-groups/{group_id}", Row(ids=_OTHER)),
    ("PATCH /v1/organizations/{org_id}/permission-groups/{group_id}", Row({"description": "x"}, ids=_OTHER)),
    ("DELETE /v1/organizations/{org_id}/permission-groups/{group_id}", Row(ids=_OTHER)),
    ("GET /v1/organizations/{org_id}/permission-groups/{group_id}/children", Row(ids=_OTHER)),
    (
        "POST /v1/organizations/{org_id}/permission-groups/{group_id}/children",
        Row({"child_group_id": "@group"}, ids=_OTHER_GROUP),
    ),
    (
        "POST /v1/organizations/{org_id}/invites/{invite_id}/revoke",
        Row(ids=(*_OTHER, ("invite_id", "org_invite"))),
    ),
    (
        "POST /v1/organizations/{org_id}/invites/{invite_id}/revoke",
        Row(ids=(*_OTHER, ("invite_id", "team_invite"))),
    ),
    ("GET /v1/organizations/{org_id}/members/{user_id}/roles", Row(ids=_OTHER)),
    ("GET /v1/organizations/{org_id}/members/{user_id}/effective-permissions", Row(ids=_OTHER)),
    ("POST /v1/organizations/{org_id}/members/{user_id}/roles", Row({"role_id": "@other_role"}, ids=_OTHER)),
    ("POST /v1/organizations/{org_id}/members/{user_id}/reset-password", Row(RESET, ids=_OTHER)),
    (
        "PATCH /v1/organizations/{org_id}/members/{user_id}/account-status",
        Row({"is_active": False}, ids=_OTHER),
    ),
    ("DELETE /v1/organizations/{org_id}/members/{user_id}", Row(ids=_OTHER)),
    ("PUT /v1/organizations/{org_id}/members/{user_id}/suspension", Row(ids=_OTHER)),
)

PRIVILEGED = {
    "admin": {
        "DELETE /v1/marketplace/categories/{category_id}",
        "DELETE /v1/models/connections/{name}",
        "DELETE /v1/plugins/{name}",
        "GET /v1/auth/platform-admin/claim",
        "GET /v1/backups",
        "GET /v1/backups/jobs",
        "GET /v1/backups/jobs/{job_id}",
        "GET /v1/marketplace/plugins/{plugin_id}/installations",
        "GET /v1/marketplace/submissions",
        "GET /v1/models/connections",
        "GET /v1/models/connections/nearby",
        "GET /v1/models/defaults",
        "GET /v1/settings",
        "POST /v1/backups",
        "POST /v1/backups/{name}/drill",
        "POST /v1/backups/{name}/restore",
        "POST /v1/bundles/reconcile",
        "POST /v1/bundles/{name}/disable",
        "POST /v1/bundles/{name}/enable",
        "POST /v1/marketplace/categories",
        "POST /v1/marketplace/submissions/{plugin_id}/approve",
        "POST /v1/marketplace/submissions/{plugin_id}/claim",
        "POST /v1/marketplace/submissions/{plugin_id}/reject",
        "POST /v1/models/connections/test",
        "POST /v1/models/connections/{name}/test",
        "POST /v1/plugins/install",
        "POST /v1/plugins/reload-webhook",
        "POST /v1/plugins/{name}/disable",
        "POST /v1/plugins/{name}/enable",
        "PUT /v1/models/connections/{name}",
        "PUT /v1/models/defaults",
    },
    "admin_or_service": {
        "DELETE /v1/graph/dependencies",
        "DELETE /v1/marketplace/ai/plugins/{plugin_id}/tools",
        "DELETE /v1/models/pulls/{pull_id}",
        "DELETE /v1/models/{model_id}",
        "GET /v1/marketplace/licenses/lookup",
        "GET /v1/models/pulls",
        "GET /v1/models/pulls/{pull_id}",
        "GET /v1/models/pulls/{pull_id}/events",
        "GET /v1/models/{model_id}/constraints",
        "GET /v1/models/{model_id}/metrics",
        "PATCH /v1/licensing/plugins/{name}/license",
        "POST /v1/graph/dependencies",
        "POST /v1/marketplace/licenses/activate",
        "POST /v1/marketplace/submissions/{plugin_id}/archive",
        "POST /v1/models",
        "POST /v1/models/fine-tune",
        "POST /v1/models/{model_id}/constraints",
    },
    "org.billing.manage": {
        "DELETE /v1/marketplace/organizations/{org_id}/licenses/{license_id}/seats/{user_id}",
        "GET /v1/marketplace/organizations/{org_id}/licenses",
        "GET /v1/marketplace/organizations/{org_id}/licenses/{license_id}/seats",
        "PUT /v1/marketplace/organizations/{org_id}/licenses/{license_id}/seats/{user_id}",
    },
    "org.list": {
        "GET /v1/organizations",
    },
    "org.members.manage": {
        "DELETE /v1/organizations/{org_id}/members/{user_id}",
        "DELETE /v1/organizations/{org_id}/members/{user_id}/suspension",
        "GET /v1/organizations/{org_id}/invites",
        "PATCH /v1/organizations/{org_id}/members/{user_id}/account-status",
        "POST /v1/organizations/{org_id}/invites",
        "POST /v1/organizations/{org_id}/invites/bulk",
        "POST /v1/organizations/{org_id}/invites/{invite_id}/revoke",
        "POST /v1/organizations/{org_id}/members",
        "POST /v1/organizations/{org_id}/members/{user_id}/reset-password",
        "PUT /v1/organizations/{org_id}/members/{user_id}/suspension",
    },
    "org.roles.manage": {
        "DELETE /v1/organizations/{org_id}/members/{user_id}/roles/{role_id}",
        "DELETE /v1/organizations/{org_id}/permission-groups/{group_id}",
        "DELETE /v1/organizations/{org_id}/permission-groups/{group_id}/children/{child_group_id}",
        "DELETE /v1/organizations/{org_id}/roles/{role_id}",
        "PATCH /v1/organizations/{org_id}/permission-groups/{group_id}",
        "PATCH /v1/organizations/{org_id}/roles/{role_id}",
        "POST /v1/organizations/{org_id}/members/bulk-roles",
        "POST /v1/organizations/{org_id}/members/{user_id}/roles",
        "POST /v1/organizations/{org_id}/permission-groups",
        "POST /v1/organizations/{org_id}/permission-groups/{group_id}/children",
        "POST /v1/organizations/{org_id}/roles",
    },
    "org.settings.manage": {
        "GET /v1/organizations/{org_id}/export",
        "PATCH /v1/organizations/{org_id}",
        "POST /v1/organizations/{org_id}/import",
    },
    "org.view": {
        "GET /v1/organizations/{org_id}",
        "GET /v1/organizations/{org_id}/members",
        "GET /v1/organizations/{org_id}/members/{user_id}/effective-permissions",
        "GET /v1/organizations/{org_id}/members/{user_id}/roles",
        "GET /v1/organizations/{org_id}/organizations",
        "GET /v1/organizations/{org_id}/permission-groups",
        "GET /v1/organizations/{org_id}/permission-groups/{group_id}",
        "GET /v1/organizations/{org_id}/permission-groups/{group_id}/children",
        "GET /v1/organizations/{org_id}/roles",
        "GET /v1/organizations/{org_id}/roles/{role_id}",
    },
    "platform_admin": {
        "DELETE /v1/auth/users/{user_id}",
        "DELETE /v1/auth/users/{user_id}/tokens/{token_id}",
        "GET /v1/auth/users",
        "GET /v1/auth/users/{user_id}/tokens",
        "GET /v1/containers/{name}/logs",
        "PATCH /v1/auth/users/{user_id}/role",
        "PATCH /v1/auth/users/{user_id}/status",
        "POST /v1/auth/users/{user_id}/reset-password",
    },
    "plugin_registry.config.read": {
        "GET /v1/plugins/{name}/config",
    },
    "plugin_registry.config.write": {
        "PUT /v1/plugins/{name}/config",
    },
    "published_chat.publish": {
        "POST /v1/rag/endpoints",
    },
    "rag.kb.create": {
        "POST /v1/rag/knowledge-base",
        "POST /v1/rag/knowledge-bases",
        "POST /v1/rag/knowledge-bases/import",
        "POST /v1/ai/vector_stores",
        "POST /v1/vector_stores",
    },
    "rag.pipeline.create": {
        "POST /v1/rag/pipeline",
    },
    "team.manage": {
        "DELETE /v1/teams/{team_id}",
        "GET /v1/teams/{team_id}/export",
        "PATCH /v1/teams/{team_id}",
        "PATCH /v1/teams/{team_id}/members/{user_id}",
        "POST /v1/teams/{team_id}/import",
        "POST /v1/teams/{team_id}/members",
    },
}
"""Routes for which an account is not enough, by what they want: a change here is a decision."""
