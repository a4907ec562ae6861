"""B10 to B12: rows read and written, against FastAPI with the same statements (design.md section 4).

B10 also against SQL written by hand for sqlite3, the rival that costs the least (`fastapi_sqlite3`).

`python -m tests.benchmarks.rows [sqlite] [postgresql]` (default: both). Both servers run on the same tables,
and are loaded in turns.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import aiohttp

from builtin_plugins.rag.models import Document, KnowledgeBase
from kernel.db.engine import Database
from kernel.sdk import Unit
from kernel.testing import postgres_database
from tests.benchmarks.load import Result, load
from tests.benchmarks.serving import Served, account, fastapi, platform
from tests.benchmarks.table import Row, print_table

SECONDS = 2.0
ROUNDS = 3
READERS, WRITERS = 32, 16
ITEMS = 10
DOCUMENTS = 3
BASES = "/v1/rag/knowledge-bases"
TEAMS = "/v1/teams"


@dataclass(frozen=True)
class Pair:
    """The two servers, and who asks them."""

    ours: Served
    theirs: Served
    by_hand: Served | None
    token: str
    base: str
    budget: str
    dialect: str


@asynccontextmanager
async def serving(dialect: str) -> AsyncIterator[Pair]:
    secret = secrets.token_hex(32)
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        given = stack.enter_context(postgres_database(plain=True)) if dialect == "postgresql" else None
        env = {"JWT_SECRET": secret, **({"DATABASE_URL": given} if given else {})}
        url = (given or "").replace("postgresql://", "postgresql+asyncpg://")
        url = url or f"sqlite+aiosqlite:///{home}/platform.db"
        async with platform(home, "--no-worker", env=env) as ours:
            token = await account(ours)
            base = await fill(ours, token, url)
            async with AsyncExitStack() as servers:
                theirs = await servers.enter_async_context(fastapi(url, secret))
                by_hand = None
                if not given:
                    by_hand = await servers.enter_async_context(fastapi(url, secret, "fastapi_sqlite3"))
                yield Pair(ours, theirs, by_hand, token, base, "B11" if given else "B10", dialect)


async def fill(served: Served, token: str, url: str) -> str:
    """Ten knowledge bases with documents and ten teams; returns the id of one of them."""
    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(served.url, headers=headers) as session:
        for number in range(ITEMS):
            body = {"name": f"Shelf {number}", "description": "What was bought this year."}
            async with session.post(BASES, json=body) as answer:
                assert answer.status in (200, 201), await answer.text()
                base = str((await answer.json())["id"])
            body = {"name": f"Team {number}", "description": "Those who read it."}
            async with session.post(TEAMS, json=body) as answer:
                assert answer.status in (200, 201), await answer.text()
    database = Database(url)
    await database.write(_add_documents)
    await database.close()
    return base


def _add_documents(unit: Unit) -> None:
    for base in unit.session.query(KnowledgeBase.id).all():
        for number in range(DOCUMENTS):
            unit.session.add(
                Document(
                    id=str(uuid.uuid4()),
                    knowledge_base_id=base.id,
                    filename=f"{number}.txt",
                    content_type="text/plain",
                    size_bytes=100,
                    sha256=uuid.uuid4().hex * 2,
                    status="completed",
                    chunk_count=7,
                )
            )


async def compare(
    pair: Pair, path: str, connections: int, body: str | None = None
) -> list[tuple[Result, Result]]:
    options: dict[str, Any] = {"token": pair.token, "seconds": SECONDS, "body": body}
    found = []
    for served in (pair.ours, pair.theirs):
        await load(served.port, path, connections=connections, **{**options, "seconds": 0.5})
    for _ in range(ROUNDS):
        ours = await load(pair.ours.port, path, connections=connections, **options)
        found.append((ours, await load(pair.theirs.port, path, connections=connections, **options)))
    return found


async def same_answers(pair: Pair, path: str) -> None:
    said = []
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {pair.token}"}) as session:
        for served in (pair.ours, pair.theirs):
            async with session.get(served.url + path) as answer:
                assert answer.status == 200, await answer.text()
                said.append(_plain(await answer.json()))
    assert said[0] == said[1], said


def _plain(value: Any) -> Any:
    """Without the zone of times, which SQLAlchemy leaves out on SQLite."""
    return json.loads(json.dumps(value).replace('Z"', '"'))


def rated(budget: str, what: str, rounds: Sequence[tuple[Result, Result]], least: float) -> Row:
    ratio = median(ours.rate / theirs.rate for ours, theirs in rounds)
    mine, others = (median(pair[i].rate for pair in rounds) for i in (0, 1))
    errors = sum(ours.errors + theirs.errors for ours, theirs in rounds)
    figure = f"{ratio:.2f} x FastAPI ({mine:,.0f}/s against {others:,.0f}/s, {errors} errors)"
    return Row(budget, what, figure, f">= {least}", ratio >= least and not errors)


def late(budget: str, what: str, rounds: Sequence[tuple[Result, Result]]) -> Row:
    mine, others = (median(pair[i].p99 for pair in rounds) for i in (0, 1))
    return Row(budget, f"{what}, p99", f"{mine:.1f} ms (FastAPI {others:.1f} ms)", "< 40 ms", mine < 40)


async def measure(dialect: str) -> list[Row]:
    rows = []
    async with serving(dialect) as pair:
        routes = {"one row by id": f"{BASES}/{pair.base}", f"list of {ITEMS}": BASES, "teams": TEAMS}
        for what, path in routes.items():
            await same_answers(pair, path)
            rounds = await compare(pair, path, READERS)
            what = f"{what}, {dialect}"
            rows.append(rated(pair.budget, what, rounds, 5 if dialect == "sqlite" else 2.5))
            rows += [late(pair.budget, what, rounds)] if dialect == "sqlite" else []
            if pair.by_hand is not None:
                closest = replace(pair, theirs=pair.by_hand)
                await same_answers(closest, path)
                rounds = await compare(closest, path, READERS)
                rows.append(rated(pair.budget, f"{what}, SQL by hand", rounds, 1))
        body = json.dumps({"name": "Another shelf", "description": "What comes next year."})
        rounds = await compare(pair, BASES, WRITERS, body)
        rows.append(rated("B12", f"create a knowledge base, {dialect}", rounds, 2))
    return rows


async def main(*dialects: str) -> None:
    print_table([row for dialect in dialects or ("sqlite", "postgresql") for row in await measure(dialect)])


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
