"""The calls of `platformctl sources rights` and `map`, and who may read a document."""

from __future__ import annotations

from typing import Any

from builtin_plugins.sources.commands.calls import base_id
from cli.client import signed_in
from cli.failures import CommandFailed

_MOST = 500


async def rights_of(source: str) -> dict[str, Any]:
    """How permissions are read, and who has no counterpart here."""
    async with signed_in() as client:
        path = f"/v1/rag/sources/{source}"
        unmapped = await client.get(f"{path}/principals", mapped="false", limit=_MOST)
        return {**await client.get(f"{path}/rights"), "unmapped": unmapped["items"]}


async def map_principal(source: str, kind: str, principal: str, target: str | None) -> dict[str, Any]:
    """Say what a person or group is here, in place of what was said of it; None takes that back."""
    async with signed_in() as client:
        path = f"/v1/rag/sources/{source}/counterparts"
        counterparts = (await client.get(path))["items"]
        remaining = [one for one in counterparts if (one["kind"], one["principal"]) != (kind, principal)]
        if target is not None:
            remaining.append({"kind": kind, "principal": principal, **target_of(target)})
        return dict(await client.call("PUT", path, json={"items": remaining}))


def target_of(text: str) -> dict[str, Any]:
    """``everyone``, ``nobody``, ``account:ID``, ``team:ID``, ``sign-in-group:NAME``. Raises CommandFailed."""
    target, _, number = text.partition(":")
    if target == "sign-in-group" and number:
        return {"target": "sign_in_group", "target_name": number}
    if target in ("everyone", "nobody") and not number:
        return {"target": target, "target_id": None}
    if target in ("account", "team") and number.isascii() and number.isdigit():
        return {"target": target, "target_id": int(number)}
    choices = "everyone, nobody, account:ID, team:ID or sign-in-group:NAME"
    raise CommandFailed(f"'{text}' is no counterpart", f"Say {choices}.")


async def readers_of_document(base: str, document: str) -> dict[str, Any] | None:
    """Who may read a document, and why; None for whoever can't change its knowledge base."""
    async with signed_in() as client:
        path = f"/v1/rag/knowledge-bases/{await base_id(client, base)}/documents/{document}/readers"
        try:
            return dict(await client.get(path))
        except CommandFailed:
            return None
