"""Invites over HTTP, as several modules of tests send them."""

from __future__ import annotations

from typing import Any

from kernel.testing import Actor


async def invite(sender: Actor, team_id: int, email: str, **body: Any) -> dict[str, Any]:
    answer = await sender.post("/v1/invites", json={"email": email, "team_id": team_id, **body})
    assert answer.status == 201, answer.body
    return dict(answer.json())


async def invite_to_org(sender: Actor, org_id: int, email: str, **body: Any) -> dict[str, Any]:
    answer = await sender.post(f"/v1/organizations/{org_id}/invites", json={"email": email, **body})
    assert answer.status == 201, answer.body
    return dict(answer.json())


def by_token(issued: dict[str, Any], action: str = "") -> str:
    return f"/v1/invites/by-token/{issued['token']}{action}"
