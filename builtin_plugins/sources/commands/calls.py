"""The calls of `platformctl sources`."""

from __future__ import annotations

import asyncio
from typing import Any

from cli.client import Client, signed_in
from cli.failures import CommandFailed, Missing

_LOOK_EVERY = 0.5
_BASES = "/v1/rag/knowledge-bases"
_ACTIVE = ("queued", "running")


async def sources_of(base: str) -> list[dict[str, Any]]:
    """The sources of a knowledge base."""
    async with signed_in() as client:
        return list((await client.get(f"{_BASES}/{await base_id(client, base)}/sources"))["items"])


async def add_source(base: str, body: dict[str, Any], *, untried: bool) -> dict[str, Any]:
    """Add one, if it can be listed or is to be added untried. Raises CommandFailed."""
    async with signed_in() as client:
        path = f"{_BASES}/{await base_id(client, base)}/sources"
        if not untried:
            test_body = {
                name: body[name] for name in ("kind", "settings", "filters", "secret") if name in body
            }
            tested = await client.call("POST", f"{path}/test", json=test_body)
            if not tested["ok"]:
                raise CommandFailed(str(tested["problem"]), "Add it all the same with --untried.")
        return dict(await client.call("POST", path, json=body))


async def test_source(source: str) -> dict[str, Any]:
    """Try one."""
    async with signed_in() as client:
        return dict(await client.call("POST", f"/v1/rag/sources/{source}/test"))


async def run_source(source: str, *, dry: bool, confirm: bool) -> dict[str, Any]:
    """Run one; returns the run once it has ended, or waits for something."""
    async with signed_in() as client:
        path = f"/v1/rag/sources/{source}"
        if confirm:
            begun = await client.call("POST", f"{path}/confirm")
        else:
            begun = await client.call("POST", f"{path}/run", json={"dry": dry})
        while True:
            runs = (await client.get(f"{path}/runs", limit=20))["items"]
            mine = next((one for one in runs if one["id"] == begun["id"]), None)
            if mine is None:
                raise Missing("the run is gone: its source was removed")
            if mine["state"] not in _ACTIVE:
                return dict(mine)
            await asyncio.sleep(_LOOK_EVERY)


async def origin_of_document(base: str, document: str) -> dict[str, Any]:
    """Where a document comes from."""
    async with signed_in() as client:
        return dict(await client.get(f"{_BASES}/{await base_id(client, base)}/documents/{document}/origin"))


async def base_id(client: Client, name_or_id: str) -> str:
    """The id of a knowledge base by name or id. Raises CommandFailed."""
    bases, offset, total = list[dict[str, Any]](), 0, 1
    while offset < total:
        page = await client.get(_BASES, limit=500, offset=offset)
        bases += [one for one in page["items"] if name_or_id in (one["id"], one["name"])]
        offset, total = offset + max(1, len(page["items"])), page["total"]
    if len(bases) > 1:
        ids = ", ".join(one["id"] for one in bases)
        raise CommandFailed(
            f"{len(bases)} knowledge bases are called '{name_or_id}'", f"Name one by its id: {ids}."
        )
    if not bases:
        raise Missing(f"no knowledge base is called '{name_or_id}'")
    return str(bases[0]["id"])
