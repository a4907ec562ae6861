"""The rival that costs the least: FastAPI with SQL written by hand for sqlite3, run in the event loop.

The same answers and the same work for each request as `fastapi_app`, whose models it uses, without
SQLAlchemy: token check, account look-up, one statement.
"""

from __future__ import annotations

import sqlite3
import time
import uuid
from typing import Annotated, Any

import jwt
from fastapi import Depends, FastAPI, HTTPException, Query
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from tests.benchmarks.fastapi_app import (
    DATABASE_URL,
    JWT_SECRET,
    Caller,
    KnowledgeBaseOut,
    KnowledgeBases,
    TeamOut,
    Teams,
)

FIELDS = (
    "id, name, description, embedding_model, llm_model, chunk_size, chunk_overlap, graph, owner_id, "
    "visibility, team_id, organization_id, publishing, date_field, accept_dates, created_at"
)
VISIBLE = """(owner_id = :me OR owner_id IS NULL OR visibility = 'shared'
    OR (visibility = 'team' AND team_id IN (SELECT value FROM json_each(:teams)))
    OR (visibility = 'organization' AND organization_id IN (SELECT value FROM json_each(:organizations))))"""
COUNTED = """SELECT page.*, coalesce(done.documents, 0) AS document_count,
    coalesce(done.vectors, 0) AS vector_count FROM page LEFT JOIN (
        SELECT knowledge_base_id, count(*) AS documents, sum(chunk_count) AS vectors FROM rag_document
        WHERE status = 'completed' AND knowledge_base_id IN (SELECT id FROM page) GROUP BY knowledge_base_id
    ) AS done ON done.knowledge_base_id = page.id"""
ONE = f"WITH page AS (SELECT {FIELDS} FROM rag_knowledge_base WHERE id = :id AND {VISIBLE}) {COUNTED}"
LIST = f"""WITH page AS (SELECT {FIELDS} FROM rag_knowledge_base WHERE {VISIBLE}
    ORDER BY created_at, id LIMIT :limit OFFSET :offset) {COUNTED} ORDER BY page.created_at, page.id"""
TOTAL = f"SELECT count(*) FROM rag_knowledge_base WHERE {VISIBLE}"
TEAMS = """SELECT id, name, description, organization_id, created_at,
    (SELECT count(*) FROM tenancy_team_member WHERE team_id = tenancy_team.id) AS member_count
    FROM tenancy_team ORDER BY id LIMIT ? OFFSET ?"""

app = FastAPI()
connection = sqlite3.connect(DATABASE_URL.partition("///")[2], isolation_level=None)
connection.row_factory = sqlite3.Row
connection.execute("PRAGMA query_only=ON")


kept: dict[str, tuple[float, Caller]] = {}
"""By token, until when a caller needs not be looked up again: two seconds, as on the platform."""


async def get_caller(credentials: Annotated[HTTPAuthorizationCredentials, Depends(HTTPBearer())]) -> Caller:
    until, caller = kept.get(credentials.credentials, (0.0, None))
    if caller is not None and time.monotonic() < until:
        return caller
    try:
        claims = jwt.decode(credentials.credentials, JWT_SECRET, algorithms=["HS256"])
    except jwt.InvalidTokenError:
        raise HTTPException(401, "Invalid token") from None
    query = "SELECT id, is_active, epoch FROM kernel_account WHERE id = ?"
    account = connection.execute(query, (int(claims["sub"]),)).fetchone()
    if account is None or not account["is_active"] or account["epoch"] != claims["epoch"]:
        raise HTTPException(401, "The session was revoked")
    caller = Caller(id=account["id"], teams=claims["teams"], organizations=[o["id"] for o in claims["orgs"]])
    kept[credentials.credentials] = time.monotonic() + 2, caller
    return caller


Me = Annotated[Caller, Depends(get_caller)]


def scope(caller: Caller) -> dict[str, Any]:
    return {"me": caller.id, "teams": str(caller.teams), "organizations": str(caller.organizations)}


def render(row: sqlite3.Row) -> KnowledgeBaseOut:
    return KnowledgeBaseOut(**{**dict(row), "graph": bool(row["graph"])})


@app.get("/ready")
async def ready() -> str:
    return "ready"


@app.get("/v1/rag/knowledge-bases/{kb_id}")
async def get_knowledge_base(kb_id: uuid.UUID, me: Me) -> KnowledgeBaseOut:
    row = connection.execute(ONE, {**scope(me), "id": str(kb_id)}).fetchone()
    if row is None:
        raise HTTPException(404, "Knowledge base not found")
    return render(row)


@app.get("/v1/rag/knowledge-bases")
async def list_knowledge_bases(
    me: Me, limit: Annotated[int, Query(ge=1, le=500)] = 50, offset: Annotated[int, Query(ge=0)] = 0
) -> KnowledgeBases:
    given = {**scope(me), "limit": limit, "offset": offset}
    (total,) = connection.execute(TOTAL, given).fetchone()
    items = [render(row) for row in connection.execute(LIST, given)]
    return KnowledgeBases(items=items, total=total, limit=limit, offset=offset)


@app.get("/v1/teams")
async def list_teams(
    _me: Me, limit: Annotated[int, Query(ge=1, le=500)] = 50, offset: Annotated[int, Query(ge=0)] = 0
) -> Teams:
    (total,) = connection.execute("SELECT count(*) FROM tenancy_team").fetchone()
    items = [TeamOut(**dict(row)) for row in connection.execute(TEAMS, (limit, offset))]
    return Teams(items=items, total=total, limit=limit, offset=offset)
