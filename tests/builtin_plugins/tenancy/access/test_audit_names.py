"""The audit log names people and things as they are called now, as far as its reader sees them."""

from __future__ import annotations

from typing import Any

import pytest

from kernel.testing import Actor, Running
from tests.builtin_plugins.rag.rag_support import ingest, make_base
from tests.builtin_plugins.tenancy.tenancy_support import id_of, somebody

pytestmark = pytest.mark.asyncio(loop_scope="session")

BASES = "/v1/rag/knowledge-bases"


async def entries(reader: Actor, by: Actor) -> list[dict[str, Any]]:
    answer = await reader.get(f"/v1/audit?actor_id={id_of(by)}&limit=100")
    assert answer.status == 200, answer.body
    records: list[dict[str, Any]] = answer.json()["entries"]
    return records


async def test_names_and_what_is_recorded(sharing: Running) -> None:
    """Making, filling and sharing a knowledge base and deleting are in it; a Platform Admin who does not see
    a knowledge base is told no name of it or of its documents.
    """
    admin = await somebody(sharing, role="admin", platform_admin=True)
    operator = await somebody(sharing, platform_admin=True)
    ann, bob = await somebody(sharing), await somebody(sharing)
    base = await make_base(ann, name="Handbook")
    document = (await ingest(sharing, ann, base, "travel.md", "A room costs 185 euro."))["document_id"]
    gone = (await ingest(sharing, ann, base, "gone.md", "Soon gone."))["document_id"]
    shared = {"visibility": "team", "people": [bob.user["username"]]}
    assert (await ann.patch(f"{BASES}/{base}", json=shared)).status == 200
    assert (await ann.delete(f"{BASES}/{base}/documents/{document}?trash=true")).status == 200
    assert (await ann.post(f"{BASES}/{base}/trash/{document}/restore")).status == 200
    assert (await ann.delete(f"{BASES}/{base}/documents/{gone}")).status == 200

    seen = {(one["action"], one["target_id"]): one for one in await entries(admin, ann)}
    assert {one["actor_name"] for one in seen.values()} == {ann.user["username"]}
    named = {key: (one["target_name"], one["target_within"]) for key, one in seen.items()}
    for action in ("created", "shared"):
        assert named["rag.knowledge_base." + action, base] == ("Handbook", None)
    for action in ("uploaded", "trashed", "restored"):
        assert named["rag.document." + action, document] == ("travel.md", base)
    for action in ("uploaded", "receipt"):
        assert named["rag.document." + action, gone] == (None, None)
    told = [one["target_name"] for one in await entries(operator, ann) if one["action"].startswith("rag.")]
    assert told and set(told) == {None}
