"""What the platform is measured against: the same answers by FastAPI, as written in an afternoon.

Token check, account look-up, and the same statements through SQLAlchemy's async ORM and aiosqlite or asyncpg.
`DATABASE_URL` and `JWT_SECRET` are those of the platform, whose tables it reads.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Annotated, Any

import jwt
from fastapi import Depends, FastAPI, HTTPException, Query
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import ColumnElement, DateTime, ForeignKey, and_, event, func, or_, select
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

DATABASE_URL = os.environ.get("DATABASE_URL", "sqlite+aiosqlite:///platform.db")
JWT_SECRET = os.environ.get("JWT_SECRET", "")
IS_SQLITE = DATABASE_URL.startswith("sqlite")

engine = create_async_engine(DATABASE_URL, pool_size=20)
sessions = async_sessionmaker(engine, expire_on_commit=False)

if IS_SQLITE:

    @event.listens_for(engine.sync_engine, "connect")
    def _set_pragmas(connection: Any, _record: Any) -> None:
        cursor = connection.cursor()
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "busy_timeout=30000"):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()


class Base(DeclarativeBase):
    type_annotation_map = {datetime: DateTime(timezone=True)}


class Account(Base):
    __tablename__ = "kernel_account"
    id: Mapped[int] = mapped_column(primary_key=True)
    username: Mapped[str]
    role: Mapped[str]
    is_active: Mapped[bool]
    epoch: Mapped[int]


class KnowledgeBase(Base):
    __tablename__ = "rag_knowledge_base"
    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    description: Mapped[str]
    embedding_model: Mapped[str]
    llm_model: Mapped[str | None]
    chunk_size: Mapped[int]
    chunk_overlap: Mapped[int]
    graph: Mapped[bool] = mapped_column(default=False)
    owner_id: Mapped[int | None]
    visibility: Mapped[str]
    team_id: Mapped[int | None]
    organization_id: Mapped[int | None]
    publishing: Mapped[str] = mapped_column(default="owner")
    date_field: Mapped[str | None]
    accept_dates: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[datetime]


class Document(Base):
    __tablename__ = "rag_document"
    id: Mapped[str] = mapped_column(primary_key=True)
    knowledge_base_id: Mapped[str] = mapped_column(ForeignKey(KnowledgeBase.id))
    status: Mapped[str]
    chunk_count: Mapped[int]


class Team(Base):
    __tablename__ = "tenancy_team"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    description: Mapped[str]
    organization_id: Mapped[int | None]
    created_at: Mapped[datetime]


class TeamMember(Base):
    __tablename__ = "tenancy_team_member"
    team_id: Mapped[int] = mapped_column(ForeignKey(Team.id), primary_key=True)
    user_id: Mapped[int] = mapped_column(primary_key=True)


class KnowledgeBaseIn(BaseModel):
    name: str = Field(min_length=1, max_length=255)
    description: str = ""
    chunk_size: int = 1000
    chunk_overlap: int = 200


class KnowledgeBaseOut(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    id: str
    name: str
    description: str
    embedding_model: str
    llm_model: str | None
    chunk_size: int
    chunk_overlap: int
    graph: bool
    document_count: int = 0
    vector_count: int = 0
    owner_id: int | None
    visibility: str
    team_id: int | None
    organization_id: int | None
    publishing: str
    date_field: str | None
    accept_dates: bool
    created_at: datetime


class KnowledgeBases(BaseModel):
    items: list[KnowledgeBaseOut]
    total: int
    limit: int
    offset: int


class TeamOut(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    id: int
    name: str
    description: str
    organization_id: int | None
    created_at: datetime
    member_count: int = 0


class Teams(BaseModel):
    items: list[TeamOut]
    total: int
    limit: int
    offset: int


@asynccontextmanager
async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
    yield
    await engine.dispose()


app = FastAPI(lifespan=lifespan)


async def get_session() -> AsyncIterator[AsyncSession]:
    async with sessions() as session:
        yield session


Db = Annotated[AsyncSession, Depends(get_session)]


class Caller(BaseModel):
    id: int
    teams: list[int]
    organizations: list[int]


async def get_caller(
    session: Db, credentials: Annotated[HTTPAuthorizationCredentials, Depends(HTTPBearer())]
) -> Caller:
    try:
        claims = jwt.decode(credentials.credentials, JWT_SECRET, algorithms=["HS256"])
    except jwt.InvalidTokenError:
        raise HTTPException(401, "Invalid token") from None
    account = await session.get(Account, int(claims["sub"]))
    if account is None or not account.is_active or account.epoch != claims["epoch"]:
        raise HTTPException(401, "The session was revoked")
    return Caller(id=account.id, teams=claims["teams"], organizations=[o["id"] for o in claims["orgs"]])


Me = Annotated[Caller, Depends(get_caller)]


def visible(caller: Caller) -> ColumnElement[bool]:
    return or_(
        KnowledgeBase.owner_id == caller.id,
        KnowledgeBase.owner_id.is_(None),
        KnowledgeBase.visibility == "shared",
        and_(KnowledgeBase.visibility == "team", KnowledgeBase.team_id.in_(caller.teams)),
        and_(
            KnowledgeBase.visibility == "organization",
            KnowledgeBase.organization_id.in_(caller.organizations),
        ),
    )


async def counts(session: AsyncSession, ids: list[str]) -> dict[str, tuple[int, int]]:
    query = (
        select(Document.knowledge_base_id, func.count(), func.sum(Document.chunk_count))
        .where(Document.knowledge_base_id.in_(ids), Document.status == "completed")
        .group_by(Document.knowledge_base_id)
    )
    return {base: (count, chunks or 0) for base, count, chunks in await session.execute(query)}


def render(base: KnowledgeBase, found: dict[str, tuple[int, int]]) -> KnowledgeBaseOut:
    shown = KnowledgeBaseOut.model_validate(base)
    shown.document_count, shown.vector_count = found.get(base.id, (0, 0))
    return shown


@app.get("/ready")
async def ready() -> str:
    return "ready"


@app.get("/v1/rag/knowledge-bases/{kb_id}")
async def get_knowledge_base(kb_id: uuid.UUID, session: Db, me: Me) -> KnowledgeBaseOut:
    query = select(KnowledgeBase).where(KnowledgeBase.id == str(kb_id), visible(me))
    base = await session.scalar(query)
    if base is None:
        raise HTTPException(404, "Knowledge base not found")
    return render(base, await counts(session, [base.id]))


@app.get("/v1/rag/knowledge-bases")
async def list_knowledge_bases(
    session: Db,
    me: Me,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    offset: Annotated[int, Query(ge=0)] = 0,
) -> KnowledgeBases:
    total = await session.scalar(select(func.count()).select_from(KnowledgeBase).where(visible(me)))
    query = select(KnowledgeBase).where(visible(me)).order_by(KnowledgeBase.created_at, KnowledgeBase.id)
    bases = (await session.scalars(query.limit(limit).offset(offset))).all()
    found = await counts(session, [base.id for base in bases])
    items = [render(base, found) for base in bases]
    return KnowledgeBases(items=items, total=total or 0, limit=limit, offset=offset)


@app.post("/v1/rag/knowledge-bases", status_code=201)
async def create_knowledge_base(wanted: KnowledgeBaseIn, session: Db, me: Me) -> KnowledgeBaseOut:
    base = KnowledgeBase(
        id=str(uuid.uuid4()),
        **wanted.model_dump(),
        embedding_model="all-MiniLM-L6-v2",
        owner_id=me.id,
        visibility="private",
        created_at=datetime.now(UTC),
    )
    session.add(base)
    await session.commit()
    return render(base, {})


@app.get("/v1/teams")
async def list_teams(
    session: Db,
    _me: Me,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    offset: Annotated[int, Query(ge=0)] = 0,
) -> Teams:
    total = await session.scalar(select(func.count()).select_from(Team))
    members = select(func.count()).where(TeamMember.team_id == Team.id).correlate(Team).scalar_subquery()
    query = select(Team, members).order_by(Team.id).limit(limit).offset(offset)
    items = []
    for team, count in await session.execute(query):
        shown = TeamOut.model_validate(team)
        shown.member_count = count
        items.append(shown)
    return Teams(items=items, total=total or 0, limit=limit, offset=offset)
