"""The tables of an earlier release come up to date with what is in them."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from sqlalchemy import Connection, inspect, text

from kernel.db.migrate import Owner, alembic_config
from kernel.db.startup import SCHEMA
from kernel.testing import Actor, Start, platforms
from tests.fakes.hash_embeddings import HashEmbeddings


async def test_failed_document_of_the_first_release(platform_home: Path, database_url: str | None) -> None:
    """A document that failed keeps its error; the code beside it, which nobody read, is gone."""
    env = {"DATABASE_URL": database_url}
    async with platforms(platform_home) as start:
        ada, path = await _document(start, env)
        owner = next(o for o in ada.running.platform.resource(SCHEMA).owners() if o.name == "rag")
        async with ada.running.platform.database.schema_change() as connection:
            await connection.run_sync(_as_first_release, owner)
            await connection.execute(text(_FAILED))
    async with platforms(platform_home) as start:
        running = await start("rag", HashEmbeddings(), env=env)
        again = await running.sign_in("ada", ada.password)
        found = (await again.get(path)).json()
        assert (found["status"], found["error"]) == ("failed", "It is encrypted.")
        async with running.platform.database.read() as session:
            columns = await (await session.connection()).run_sync(_columns)
        assert "error_code" not in columns


async def _document(start: Start, env: dict[str, str | None]) -> tuple[Actor, str]:
    running = await start("rag", HashEmbeddings(), env=env)
    ada = await running.user("ada")
    base = (await ada.post("/v1/rag/knowledge-bases", json={"name": "Nordlys"})).json()["id"]
    uploaded = await ada.upload(f"/v1/rag/knowledge-bases/{base}/upload", "a.txt", b"A station on Senja.")
    return ada, f"/v1/rag/knowledge-bases/{base}/documents/{uploaded.json()['document_id']}"


_FAILED = "UPDATE rag_document SET status='failed', error='It is encrypted.', error_code='encrypted'"


def _as_first_release(connection: Connection, owner: Owner) -> None:
    command.downgrade(alembic_config(owner, connection), "0001")


def _columns(connection: Connection) -> set[str]:
    return {column["name"] for column in inspect(connection).get_columns("rag_document")}
