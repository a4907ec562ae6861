"""The tables of an earlier release come up to date with what is in them."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest
from alembic import command
from sqlalchemy import Connection, inspect, text

from builtin_plugins.rag.services.telling import TELL_LANGUAGES, TellPayload
from kernel.db.migrate import Owner, alembic_config
from kernel.db.startup import SCHEMA
from kernel.testing import Actor, Running, Start, platforms
from tests.fakes.hash_embeddings import HashEmbeddings

pytestmark = pytest.mark.each_database


async def test_failed_document_of_the_first_release(platform_home: Path, database_url: str | None) -> None:
    """A document that failed keeps its error; the code beside it, which nobody read, is gone."""
    env = {"DATABASE_URL": database_url}
    async with platforms(platform_home) as start:
        ada, path = await _document(start, env)
        async with ada.running.platform.database.schema_change() as connection:
            await connection.run_sync(_to, _rag(ada.running), "0001")
            await connection.execute(text(_FAILED))
    async with platforms(platform_home) as start:
        running = await start("rag", HashEmbeddings(), env=env)
        again = await running.sign_in("ada", ada.password)
        found = (await again.get(path)).json()
        assert (found["status"], found["error"]) == ("failed", "It is encrypted.")
        columns = await running.platform.database.read(lambda session: _columns(session.connection()))
        assert "error_code" not in columns


async def test_documents_of_the_second_release(platform_home: Path, database_url: str | None) -> None:
    """They stay as they are; from now on a row outlives its knowledge base until the job has removed it."""
    env = {"DATABASE_URL": database_url}
    async with platforms(platform_home) as start:
        ada, path = await _document(start, env)
        await ada.running.run_jobs()
        before = (await ada.get(path)).json()
        async with ada.running.platform.database.schema_change() as connection:
            await connection.run_sync(_to, _rag(ada.running), "0002")
            assert await connection.run_sync(_references) == {"rag_knowledge_base"}
    async with platforms(platform_home) as start:
        running = await start("rag", HashEmbeddings(), env=env)
        again = await running.sign_in("ada", ada.password)
        assert (await again.get(path)).json() == before and before["status"] == "completed"
        base = path.partition("/documents/")[0]
        same = await again.upload(f"{base}/upload", "b.txt", CONTENT)
        assert (same.status, same.json()["document_id"]) == (200, before["document_id"])
        assert (await again.delete(base)).status == 200
        assert await _rows(running) == 1
        await running.run_jobs()
        assert await _rows(running) == 0
        async with running.platform.database.schema_change() as connection:
            assert await connection.run_sync(_references) == set()


async def test_documents_of_the_fourth_release(platform_home: Path, database_url: str | None) -> None:
    """They have no tree, stay as they are, and can get one."""
    env = {"DATABASE_URL": database_url}
    async with platforms(platform_home) as start:
        ada, path = await _document(start, env, LONG)
        await ada.running.run_jobs()
        before = (await ada.get(path)).json()
        async with ada.running.platform.database.schema_change() as connection:
            await connection.run_sync(_to, _rag(ada.running), "0004")
            assert "tree_nodes" not in await connection.run_sync(_columns)
    async with platforms(platform_home) as start:
        running = await start("rag", HashEmbeddings(), env=env)
        again = await running.sign_in("ada", ada.password)
        assert (await again.get(path)).json() == before and before["tree_nodes_created"] == 0
        base = path.partition("/documents/")[0]
        assert (await again.post(f"{base}/trees")).status == 202
        await running.run_jobs()
        assert (await again.get(path)).json()["tree_nodes_created"] > 0


async def test_knowledge_bases_of_the_fifth_release(platform_home: Path, database_url: str | None) -> None:
    """They keep their documents, and can change their embedding model."""
    env = {"DATABASE_URL": database_url}
    async with platforms(platform_home) as start:
        ada, path = await _document(start, env)
        await ada.running.run_jobs()
        before = (await ada.get(path)).json()
        async with ada.running.platform.database.schema_change() as connection:
            await connection.run_sync(_to, _rag(ada.running), "0005")
    async with platforms(platform_home) as start:
        running = await start("rag", HashEmbeddings(), env=env)
        again = await running.sign_in("ada", ada.password)
        assert (await again.get(path)).json() == before and before["status"] == "completed"
        base = path.partition("/documents/")[0]
        changed = await again.post(f"{base}/reembed", json={"embedding_model": "all-minilm"})
        assert changed.status == 202
        await running.run_jobs()
        assert (await again.get(base)).json()["embedding_model"] == "all-minilm"
        assert (await again.get(path)).json() == before


async def test_documents_of_the_sixth_release(platform_home: Path, database_url: str | None) -> None:
    """Their language was never told: a job tells it, and their words are found in other forms."""
    env = {"DATABASE_URL": database_url}
    async with platforms(platform_home) as start:
        ada, path = await _document(start, env, GERMAN)
        await ada.running.run_jobs()
        async with ada.running.platform.database.schema_change() as connection:
            await connection.run_sync(_to, _rag(ada.running), "0006")
            await connection.execute(text(_WITHOUT_LANGUAGE))
    async with platforms(platform_home) as start:
        running = await start("rag", HashEmbeddings(), env=env)
        again = await running.sign_in("ada", ada.password)
        search = f"{path.partition('/documents/')[0]}/search"

        async def by_words() -> float:
            (found,) = (await again.post(search, json={"question": "Katze"})).json()["items"]
            return float(found["scores"]["text"])

        assert await by_words() == 0.0
        database = running.platform.database
        await database.write(lambda unit: unit.enqueue(TELL_LANGUAGES, TellPayload()))
        await running.run_jobs()
        assert await by_words() > 0.0
        untold = text("SELECT count(*) FROM rag_document WHERE NOT language_told")
        assert await database.read(lambda session: session.scalar(untold)) == 0


async def test_documents_of_the_eighth_release(platform_home: Path, database_url: str | None) -> None:
    """Nobody knows what they came out of; what comes now is known."""
    env = {"DATABASE_URL": database_url}
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("a.txt", CONTENT)
    async with platforms(platform_home) as start:
        ada, path = await _document(start, env, archive.getvalue())
        await ada.running.run_jobs()
        base = path.partition("/documents/")[0]
        before = (await ada.get(f"{base}/documents")).json()["items"]
        assert [one["parent_id"] for one in before] == [None, path.rpartition("/")[2]]
        async with ada.running.platform.database.schema_change() as connection:
            await connection.run_sync(_to, _rag(ada.running), "0008")
            assert "parent_id" not in await connection.run_sync(_columns)
    async with platforms(platform_home) as start:
        running = await start("rag", HashEmbeddings(), env=env)
        again = await running.sign_in("ada", ada.password)
        found = (await again.get(f"{base}/documents")).json()["items"]
        assert found == [{**one, "parent_id": None} for one in before]
        new = await _upload(again, "Senja", archive.getvalue())
        await running.run_jobs()
        children = f"{new.partition('/documents/')[0]}/documents?parent_id={new.rpartition('/')[2]}"
        assert [one["filename"] for one in (await again.get(children)).json()["items"]] == ["a.txt"]


async def test_documents_of_the_ninth_release(platform_home: Path, database_url: str | None) -> None:
    """What was waiting is taken in, without what is deleted meanwhile."""
    env = {"DATABASE_URL": database_url}
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("a.txt", CONTENT)
        file.writestr("b.txt", CONTENT[:-1])
    async with platforms(platform_home) as start:
        ada, path = await _document(start, env)
        await ada.running.run_jobs()
        base = path.partition("/documents/")[0]
        assert (await ada.upload(f"{base}/upload", "box.zip", archive.getvalue())).status == 202
        async with ada.running.platform.database.schema_change() as connection:
            await connection.run_sync(_to, _rag(ada.running), "0009")
            assert "rag_deletion" not in await connection.run_sync(_tables)
    async with platforms(platform_home) as start:
        running = await start("rag", HashEmbeddings(), env=env)
        again = await running.sign_in("ada", ada.password)
        assert (await again.delete(path)).status == 200
        await running.run_jobs()
        found = (await again.get(f"{base}/documents")).json()["items"]
        assert [(one["filename"], one["status"]) for one in found] == [
            ("box.zip", "completed"),
            ("b.txt", "completed"),
        ]


async def test_back_to_the_second_release(platform_home: Path, database_url: str | None) -> None:
    """Rows that had outlived their knowledge base go, as nothing may refer to one that is not there."""
    env = {"DATABASE_URL": database_url}
    async with platforms(platform_home) as start:
        ada, path = await _document(start, env)
        kept = (await _upload(ada, "Kept")).partition("/documents/")[0]
        assert (await ada.delete(path.partition("/documents/")[0])).status == 200
        assert await _rows(ada.running) == 2
        async with ada.running.platform.database.schema_change() as connection:
            await connection.run_sync(_to, _rag(ada.running), "0002")
        assert await _rows(ada.running) == 1
    async with platforms(platform_home) as start:
        again = await (await start("rag", HashEmbeddings(), env=env)).sign_in("ada", ada.password)
        assert (await again.get(f"{kept}/documents")).json()["total"] == 1


async def _document(
    start: Start, env: dict[str, str | None], content: bytes | None = None
) -> tuple[Actor, str]:
    running = await start("rag", HashEmbeddings(), env=env)
    ada = await running.user("ada")
    return ada, await _upload(ada, "Nordlys", content or CONTENT)


async def _upload(ada: Actor, name: str, content: bytes | None = None) -> str:
    base = (await ada.post("/v1/rag/knowledge-bases", json={"name": name})).json()["id"]
    uploaded = await ada.upload(f"/v1/rag/knowledge-bases/{base}/upload", "a.txt", content or CONTENT)
    return f"/v1/rag/knowledge-bases/{base}/documents/{uploaded.json()['document_id']}"


async def _rows(running: Running) -> int:
    query = text("SELECT count(*) FROM rag_document")
    return int(await running.platform.database.read(lambda session: session.scalar(query)) or 0)


def _rag(running: Running) -> Owner:
    return next(owner for owner in running.platform.resource(SCHEMA).owners() if owner.name == "rag")


CONTENT = b"A station on Senja."
LONG = "\n\n".join(f"Paragraph {n} tells of the station on Senja. " * 8 for n in range(20)).encode()
GERMAN = "Die Katzen schlafen auf den Bänken vor der Stube, bis es im Herbst zu kalt wird.".encode()
_WITHOUT_LANGUAGE = """UPDATE kernel_point SET payload = '{"page": null, "char_start": 0, "char_end": 80}'"""
_FAILED = "UPDATE rag_document SET status='failed', error='It is encrypted.', error_code='encrypted'"


def _to(connection: Connection, owner: Owner, revision: str) -> None:
    command.downgrade(alembic_config(owner, connection), revision)


def _references(connection: Connection) -> set[str]:
    return {key["referred_table"] for key in inspect(connection).get_foreign_keys("rag_document")}


def _tables(connection: Connection) -> list[str]:
    return inspect(connection).get_table_names()


def _columns(connection: Connection) -> set[str]:
    return {column["name"] for column in inspect(connection).get_columns("rag_document")}
