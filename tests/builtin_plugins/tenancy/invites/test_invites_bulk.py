"""Invites in bulk: a result for each address, whatever the others are."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from kernel.testing import Actor, Reply, Running, Start
from tests.builtin_plugins.tenancy.invite_support import by_token, invite
from tests.builtin_plugins.tenancy.tenancy_support import (
    audited,
    fresh,
    id_of,
    join,
    join_team,
    make_org,
    make_team,
    refused,
    somebody,
    suspend,
)
from tests.fakes.smtp_server import smtp_server

pytestmark = pytest.mark.asyncio(loop_scope="session")


def address() -> str:
    return f"{fresh('x')}@example.org"


async def bulk(sender: Actor, team_id: int, emails: list[Any], **body: Any) -> Reply:
    return await sender.post("/v1/invites/bulk", json={"emails": emails, "team_id": team_id, **body})


def outcomes(answer: Reply) -> list[tuple[str, str | None]]:
    """The status and reason of each result, once the counts are held against them."""
    assert answer.status == 200, answer.body
    response = answer.json()
    results = [(one["status"], one["reason"]) for one in response["results"]]
    assert response["created_count"] == sum(status == "created" for status, _ in results)
    assert response["failed_count"] == sum(status == "failed" for status, _ in results)
    assert response["created_count"] + response["failed_count"] == len(results)
    return results


async def test_each_address_has_its_result(running: Running) -> None:
    """One of each kind, in the order of the request; what fails stops nothing else."""
    ann, member = await somebody(running), await somebody(running)
    team = await make_team(running, ann)
    await join_team(running, team, member)
    pending = await invite(ann, team, address())
    first, second = address(), address()
    emails = [
        first,
        "nobody",
        first.upper(),
        member.user["email"].upper(),
        pending["email"],
        f" {second} ",
        "nobody",
        "two@@example.org",
        "",
        "x" * 400 + "@example.org",
    ]
    answer = await bulk(ann, team, emails, team_role="team_admin", max_uses=3)
    assert outcomes(answer) == [
        ("created", None),
        ("failed", "invalid_email"),
        ("failed", "duplicate_in_request"),
        ("failed", "already_member"),
        ("failed", "already_invited"),
        ("created", None),
        *[("failed", "invalid_email")] * 4,
    ]
    results = answer.json()["results"]
    assert [one["email"].strip() for one in results] == [one.strip() for one in emails]
    assert all(one.keys() == {"email", "status", "error", "reason", "rule", "invite"} for one in results)
    for one in results:
        failed = one["status"] == "failed"
        assert (one["error"] is not None) == failed == (one["invite"] is None)
        assert (one["rule"] is not None) == (one["reason"] == "invalid_email")
    assert "@" in results[1]["rule"]
    made = [one["invite"] for one in results if one["invite"]]
    assert [one["email"] for one in made] == [first, second]
    assert {(one["team_role"], one["max_uses"], one["team_id"]) for one in made} == {("team_admin", 3, team)}
    for one in made:
        ben = await somebody(running)
        assert (await ben.post(by_token(one, "/redeem"))).status == 200
        assert len(await audited(running, "invite.created", one["id"])) == 1
    listed = (await ann.get("/v1/invites", params={"team_id": str(team)})).json()
    assert listed["total"] == 3


async def test_the_same_request_again_makes_nothing(running: Running) -> None:
    """A retry finds every address invited; one that was revoked or has expired can be invited again."""
    ann = await somebody(running)
    team = await make_team(running, ann)
    emails = [address() for _ in range(100)]
    assert outcomes(await bulk(ann, team, emails)) == [("created", None)] * 100
    assert outcomes(await bulk(ann, team, emails)) == [("failed", "already_invited")] * 100
    page = (await ann.get("/v1/invites", params={"team_id": str(team), "limit": "1"})).json()
    assert page["total"] == 100
    newest = page["items"][0]
    assert newest["email"] == emails[-1]
    assert (await ann.post(f"/v1/invites/{newest['id']}/revoke")).status == 200
    assert outcomes(await bulk(ann, team, emails[-2:])) == [("failed", "already_invited"), ("created", None)]


async def test_an_invite_that_admits_nobody_is_in_nobodys_way(running: Running) -> None:
    """Whom a former administrator invited can be invited by the present one."""
    ann, eve = await somebody(running), await somebody(running)
    team = await make_team(running, ann)
    await join_team(running, team, eve, "team_admin")
    by_eve, by_ann = address(), address()
    assert outcomes(await bulk(eve, team, [by_eve])) == [("created", None)]
    assert outcomes(await bulk(ann, team, [by_eve, by_ann])) == [
        ("failed", "already_invited"),
        ("created", None),
    ]
    assert (await eve.delete(f"/v1/teams/{team}/members/{id_of(eve)}")).status == 204
    assert outcomes(await bulk(ann, team, [by_eve, by_ann])) == [
        ("created", None),
        ("failed", "already_invited"),
    ]


async def test_organizations_invite_in_bulk(running: Running) -> None:
    """Members, suspended ones too, are reported; the invites are those of an organization."""
    owner, member, suspended = [await somebody(running) for _ in range(3)]
    home, other = await make_org(running, owner), await make_org(running, owner)
    for actor in (member, suspended):
        await join(running, home, actor)
    await suspend(running, home, suspended)
    body = {
        "emails": [address(), member.user["email"], suspended.user["email"], "nobody"],
        "org_role": "admin",
    }
    answer = await owner.post(f"/v1/organizations/{home}/invites/bulk", json=body)
    assert outcomes(answer) == [
        ("created", None),
        ("failed", "already_member"),
        ("failed", "already_member"),
        ("failed", "invalid_email"),
    ]
    made = answer.json()["results"][0]["invite"]
    assert (made["organization_id"], made["org_role"]) == (home, "admin")
    ben = await somebody(running)
    refused(await ben.post(by_token(made, "/redeem")), 403, "invite_for_another")
    elsewhere = await owner.post(f"/v1/organizations/{other}/invites/bulk", json=body)
    assert outcomes(elsewhere)[:3] == [("created", None)] * 3


@pytest.mark.asyncio(loop_scope="function")
async def test_every_invite_is_mailed(start_platform: Start) -> None:
    """Each invite says that its e-mail was taken, and what is not an address gets none."""
    async with smtp_server() as mailbox:
        running = await start_platform(
            "tenancy", env={**mailbox.env, "PLATFORM_TENANCY_INVITE_MAIL_SECONDS": "20"}
        )
        ann = await somebody(running)
        team = await make_team(running, ann)
        emails = [address() for _ in range(30)]
        results = (await bulk(ann, team, [*emails, "nobody"])).json()["results"]
        assert {one["invite"]["email_sent"] for one in results[:-1]} == {True}
        assert sorted(letter["To"] for letter in mailbox.letters) == sorted(emails)


@pytest.mark.asyncio(loop_scope="function")
async def test_a_silent_mail_server_holds_nothing_up(start_platform: Start) -> None:
    """The time is bounded for all e-mails together, and every invite stands."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        await _invite_past(start_platform, silent.getsockname()[1])


async def _invite_past(start_platform: Start, port: int) -> None:
    env = {
        "PLATFORM_SMTP_HOST": "127.0.0.1",
        "PLATFORM_SMTP_PORT": str(port),
        "PLATFORM_SMTP_TLS": "none",
        "PLATFORM_MAIL_FROM": "platform@example.org",
        "PLATFORM_TENANCY_INVITE_MAIL_SECONDS": "0.3",
    }
    running = await start_platform("tenancy", env=env)
    ann = await somebody(running)
    team = await make_team(running, ann)
    results = (await bulk(ann, team, [address() for _ in range(30)])).json()["results"]
    assert {one["status"] for one in results} == {"created"}
    assert {one["invite"]["email_sent"] for one in results} == {False}
    assert (await ann.get("/v1/invites", params={"team_id": str(team)})).json()["total"] == 30
