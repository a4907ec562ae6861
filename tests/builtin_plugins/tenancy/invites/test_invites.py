"""Invites to teams and organizations: who sends, sees, revokes and redeems them, and what they never do."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import delete, select, text, update

from builtin_plugins.tenancy.models import Invite, Membership, TeamMember
from kernel.auth.models import AuditEntry
from kernel.http.middlewares import ACCESS_LOG
from kernel.sdk import Account, utc_now
from kernel.testing import Actor, Running
from tests.builtin_plugins.tenancy.invite_support import by_token, invite, invite_to_org
from tests.builtin_plugins.tenancy.tenancy_support import (
    audited,
    change_membership,
    claims,
    fresh,
    give_keys,
    id_of,
    join,
    join_team,
    make_org,
    make_team,
    refused,
    somebody,
    suspend,
    write,
)
from tests.fakes.rows import execute

pytestmark = pytest.mark.asyncio(loop_scope="session")

UNKNOWN = 2_000_000_000


async def status_of(running: Running, issued: dict[str, Any]) -> str:
    """The effective status, as whoever has the token sees it."""
    return str((await running.anonymous.get(by_token(issued))).json()["status"])


async def expire(running: Running, issued: dict[str, Any]) -> None:
    over = utc_now() - timedelta(seconds=1)
    await execute(
        running.platform.database, update(Invite).where(Invite.id == issued["id"]).values(expires_at=over)
    )


async def role_in_team(running: Running, team_id: int, actor: Actor) -> str | None:
    member = await running.platform.database.read(
        lambda session: session.get(TeamMember, (team_id, id_of(actor)))
    )
    return None if member is None else str(member.team_role)


async def membership(running: Running, org_id: int, actor: Actor) -> Membership | None:
    return await running.platform.database.read(
        lambda session: session.get(Membership, (org_id, id_of(actor)))
    )


async def test_an_invite_leads_into_a_team(running: Running) -> None:
    """Created, seen by token, redeemed, spent: with the fields of decisions.md, and audited."""
    ann, ben = await somebody(running), await somebody(running)
    team = await make_team(running, ann)
    issued = await invite(ann, team, ben.user["email"], team_role="team_admin")
    token = issued.pop("token")
    assert issued.keys() == {
        *("id", "email", "team_id", "team_role", "status", "max_uses", "use_count", "expires_at"),
        *("created_at", "link", "how_to_accept", "email_sent"),
    }
    assert (issued["status"], issued["max_uses"], issued["use_count"]) == ("pending", 1, 0)
    assert (issued["link"], issued["email_sent"]) == (None, None)
    redeeming = issued["how_to_accept"].rpartition("POST ")[2]
    assert redeeming == by_token({"token": token}, "/redeem"), (
        "without link and mail the answer says what to do"
    )

    listed = (await ann.get("/v1/invites", params={"team_id": str(team)})).json()
    assert listed["items"] == [
        {k: v for k, v in issued.items() if k not in ("link", "how_to_accept", "email_sent")}
    ]
    assert (listed["total"], listed["limit"], listed["offset"]) == (1, 50, 0)

    name = (await ann.get(f"/v1/teams/{team}")).json()["name"]
    where = {"team_id": team, "team_name": name, "team_role": "team_admin"}
    nowhere = {"organization_id": None, "organization_name": None, "org_role": None}
    seen = await running.anonymous.get(f"/v1/invites/by-token/{token}")
    assert seen.json() == {
        "email": ben.user["email"],
        "status": "pending",
        "expires_at": issued["expires_at"],
        "management": None,
        "managed_by_default": None,
        **where,
        **nowhere,
    }
    joined = await ben.post(f"/v1/invites/by-token/{token}/redeem")
    assert joined.status == 200
    result = joined.json()
    assert result.pop("message")
    assert result == {**where, **nowhere, "managed": None}
    assert (await claims(ben))["teams"] == [team]
    assert await status_of(running, {"token": token}) == "accepted"

    created, redeemed = [
        (await audited(running, f"invite.{what}", issued["id"]))[0] for what in ("created", "redeemed")
    ]
    assert (created.actor_id, redeemed.actor_id) == (id_of(ann), id_of(ben))
    assert (redeemed.after_state["status"], redeemed.after_state["use_count"]) == ("accepted", 1)
    (member,) = await audited(running, "team.member_added", team)
    assert member.after_state["user_id"] == id_of(ben)


async def test_an_invite_leads_into_an_organization(running: Running) -> None:
    """Redeemed by the same route; the entries belong to the organization."""
    owner, ben = await somebody(running), await somebody(running)
    home = await make_org(running, owner)
    issued = await invite_to_org(owner, home, ben.user["email"], org_role="admin")
    assert (issued["organization_id"], issued["org_role"]) == (home, "admin")
    seen = (await running.anonymous.get(by_token(issued))).json()
    assert (seen["organization_id"], seen["org_role"], seen["team_id"]) == (home, "admin", None)
    assert seen["organization_name"]
    joined = (await ben.post(by_token(issued, "/redeem"))).json()
    assert (joined["organization_id"], joined["org_role"], joined["team_id"]) == (home, "admin", None)
    assert (await claims(ben))["orgs"] == [{"id": home, "role": "admin"}]
    listed = (await ben.get(f"/v1/organizations/{home}/invites")).json()
    assert [(one["id"], one["status"]) for one in listed["items"]] == [(issued["id"], "accepted")]
    for action, target in (("invite.redeemed", issued["id"]), ("organization.member_added", id_of(ben))):
        (entry,) = await audited(running, action, target)
        assert entry.scope_org_id == home


async def test_a_token_is_kept_as_a_hash_only(running: Running, caplog: pytest.LogCaptureFixture) -> None:
    """No table, no audit entry and no log line holds it; answers that hold it aren't cached."""
    ann, ben = await somebody(running), await somebody(running)
    team = await make_team(running, ann)
    with caplog.at_level(logging.DEBUG, logger="platform"):
        body = {"email": ben.user["email"], "team_id": team}
        answer = await ann.post("/v1/invites", json=body)
        issued = answer.json()
        assert answer.headers["Cache-Control"] == "no-store"
        await running.anonymous.get(by_token(issued))
        await ben.post(by_token(issued, "/redeem"))
        running.platform.resource(ACCESS_LOG).flush()
    token = issued["token"]
    assert len(token) >= 43
    assert any("/v1/invites/by-token" in record.getMessage() for record in caplog.records), (
        "the access log was read"
    )
    assert not any(token in record.getMessage() for record in caplog.records)

    rows = await running.platform.database.read(
        lambda session: session.execute(text("SELECT * FROM tenancy_invite")).all()
    )
    entries = await running.platform.database.read(lambda session: session.scalars(select(AuditEntry)).all())
    assert token not in str(rows)
    assert token not in str([(one.before_state, one.after_state) for one in entries])


async def test_unknown_tokens(running: Running) -> None:
    ann = await somebody(running)
    for token in ("x", "x" * 3000, "%00", "%ff%fe", "..%2f", "☃"):
        path = f"/v1/invites/by-token/{token}"
        assert (await running.anonymous.get(path)).status == 404
        assert (await ann.post(f"{path}/redeem")).status == 404
    refused(await running.anonymous.post("/v1/invites/by-token/x/redeem"), 401)


@pytest.mark.parametrize("state", ["accepted", "revoked", "expired"])
async def test_an_invite_that_is_over(running: Running, state: str) -> None:
    """409 for its own address, and can't be revoked any more."""
    ann, ben = await somebody(running), await somebody(running)
    team = await make_team(running, ann)
    issued = await invite(ann, team, ben.user["email"])
    if state == "accepted":
        assert (await ben.post(by_token(issued, "/redeem"))).status == 200
        assert (await ben.delete(f"/v1/teams/{team}/members/{id_of(ben)}")).status == 204
    elif state == "revoked":
        revoked = await ann.post(f"/v1/invites/{issued['id']}/revoke")
        assert (revoked.status, revoked.json()["status"]) == (200, "revoked")
    else:
        await expire(running, issued)
    assert await status_of(running, issued) == state
    code = {"accepted": "invite_spent"}.get(state, f"invite_{state}")
    refused(await ben.post(by_token(issued, "/redeem")), 409, code)
    assert await role_in_team(running, team, ben) is None
    refused(await ann.post(f"/v1/invites/{issued['id']}/revoke"), 409, "invite_not_pending")
    for filtered in ("pending", "accepted", "revoked", "expired"):
        query = {"team_id": str(team), "status": filtered}
        listed = (await ann.get("/v1/invites", params=query)).json()
        assert listed["total"] == len(listed["items"]) == (filtered == state)


async def test_a_personal_invite_is_bound_to_its_address(running: Running) -> None:
    """403 for another account, in whatever state; the case of the address does not matter."""
    ann, ben, eve = [await somebody(running) for _ in range(3)]
    team = await make_team(running, ann)
    issued = await invite(ann, team, ben.user["email"].upper())
    refused(await eve.post(by_token(issued, "/redeem")), 403, "invite_for_another")
    assert await role_in_team(running, team, eve) is None
    assert (await ben.post(by_token(issued, "/redeem"))).status == 200
    refused(await eve.post(by_token(issued, "/redeem")), 403, "invite_for_another")


async def test_an_address_is_invited_again(running: Running) -> None:
    """Whoever lost the token sends another invite; both are listed, and one of them is enough."""
    ann, ben = await somebody(running), await somebody(running)
    team = await make_team(running, ann)
    lost, issued = [await invite(ann, team, ben.user["email"]) for _ in range(2)]
    listed = (await ann.get("/v1/invites", params={"team_id": str(team)})).json()["items"]
    assert [one["id"] for one in listed] == [issued["id"], lost["id"]]
    assert (await ben.post(by_token(issued, "/redeem"))).status == 200
    refused(await ben.post(by_token(lost, "/redeem")), 409, "already_member")


async def test_an_invite_for_several(running: Running) -> None:
    """Whoever has the token, each account once, until it is spent."""
    ann = await somebody(running)
    team = await make_team(running, ann)
    issued = await invite(ann, team, "friends@example.org", max_uses=2)
    friends = [await somebody(running) for _ in range(3)]
    assert (await friends[0].post(by_token(issued, "/redeem"))).status == 200
    refused(await friends[0].post(by_token(issued, "/redeem")), 409, "already_member")
    assert await status_of(running, issued) == "pending"
    assert (await friends[1].post(by_token(issued, "/redeem"))).status == 200
    refused(await friends[2].post(by_token(issued, "/redeem")), 409, "invite_spent")
    (row,) = (await ann.get("/v1/invites", params={"team_id": str(team)})).json()["items"]
    assert (row["status"], row["use_count"]) == ("accepted", 2)


async def test_an_invite_never_changes_a_membership(running: Running) -> None:
    """A member keeps the role and the invite its uses, in teams and organizations."""
    ann, ben = await somebody(running), await somebody(running)
    home, team = await make_org(running, ann), await make_team(running, ann)
    await join_team(running, team, ben, "team_admin")
    await join(running, home, ben, "owner")
    to_team = await invite(ann, team, "all@example.org", max_uses=5)
    to_org = await invite_to_org(ann, home, "all@example.org", max_uses=5)
    for issued in (to_team, to_org):
        refused(await ben.post(by_token(issued, "/redeem")), 409, "already_member")
    assert await role_in_team(running, team, ben) == "team_admin"
    kept = await membership(running, home, ben)
    assert kept is not None and kept.org_role == "owner"
    (row,) = (await ann.get("/v1/invites", params={"team_id": str(team)})).json()["items"]
    assert row["use_count"] == 0


async def test_a_suspended_member_does_not_redeem_the_way_back(running: Running) -> None:
    ann, ben = await somebody(running), await somebody(running)
    home = await make_org(running, ann)
    team = await make_team(running, ann, organization=home)
    await join(running, home, ben)
    to_org = await invite_to_org(ann, home, "all@example.org", max_uses=5)
    to_team = await invite(ann, team, "all@example.org", max_uses=5)
    await suspend(running, home, ben)
    refused(await ben.post(by_token(to_org, "/redeem")), 403, "membership_suspended")
    refused(await ben.post(by_token(to_team, "/redeem")), 403, "not_a_member")
    kept = await membership(running, home, ben)
    assert kept is not None and kept.suspended_at is not None
    body = {"email": ben.user["email"]}
    refused(await ann.post(f"/v1/organizations/{home}/invites", json=body), 409, "already_member")


async def test_a_team_of_an_organization_needs_the_membership_there(running: Running) -> None:
    """A stranger's invite to the team works once the stranger is in the organization."""
    ann, ben = await somebody(running), await somebody(running)
    home = await make_org(running, ann)
    team = await make_team(running, ann, organization=home)
    to_team = await invite(ann, team, ben.user["email"])
    refused(await ben.post(by_token(to_team, "/redeem")), 403, "not_a_member")
    to_org = await invite_to_org(ann, home, ben.user["email"])
    for issued in (to_org, to_team):
        assert (await ben.post(by_token(issued, "/redeem"))).status == 200


@pytest.mark.parametrize("loss", ["removed", "demoted", "deactivated"])
async def test_an_invite_is_worth_what_its_sender_may_do(running: Running, loss: str) -> None:
    """Whoever lost the right to invite does not come back by an invite of his own, nor does anybody else."""
    ann, eve, ben = [await somebody(running) for _ in range(3)]
    team = await make_team(running, ann)
    await join_team(running, team, eve, "team_admin")
    issued = await invite(eve, team, "all@example.org", team_role="team_admin", max_uses=9)
    path = f"/v1/teams/{team}/members/{id_of(eve)}"
    if loss == "removed":
        assert (await ann.delete(path)).status == 204
    elif loss == "demoted":
        assert (await ann.patch(path, json={"team_role": "member"})).status == 200
    else:
        change = update(Account).where(Account.id == id_of(eve)).values(is_active=False)
        await execute(running.platform.database, change)
    for actor in (ben, eve) if loss == "removed" else (ben,):
        refused(await actor.post(by_token(issued, "/redeem")), 409, "invite_withdrawn")
        assert await role_in_team(running, team, actor) is None
    assert await status_of(running, issued) == "revoked"
    if loss == "demoted":
        assert (await ann.patch(path, json={"team_role": "team_admin"})).status == 200
        assert (await ben.post(by_token(issued, "/redeem"))).status == 200


async def test_an_owners_invite_ends_with_the_owner(running: Running) -> None:
    """An owner who became an admin may still invite, but no owners."""
    ann, eve, ben = [await somebody(running) for _ in range(3)]
    home = await make_org(running, ann)
    await join(running, home, eve, "owner")
    as_owner = await invite_to_org(eve, home, "all@example.org", org_role="owner", max_uses=9)
    as_member = await invite_to_org(eve, home, "all@example.org", max_uses=9)
    await change_membership(running, home, eve, org_role="admin")
    refused(await ben.post(by_token(as_owner, "/redeem")), 409, "invite_withdrawn")
    assert (await ben.post(by_token(as_member, "/redeem"))).status == 200
    await write(running, delete(Membership).where(Membership.user_id == id_of(eve)), about=[eve])
    refused(await eve.post(by_token(as_member, "/redeem")), 409, "invite_withdrawn")


async def test_invites_by_those_above(running: Running) -> None:
    """Instance and Platform Admins, and who manages the team's organization, invite and are backed."""
    owner, ann = await somebody(running), await somebody(running)
    home = await make_org(running, owner)
    team = await make_team(running, None, organization=home)
    senders = [owner, await somebody(running, role="admin"), await somebody(running, platform_admin=True)]
    for sender in senders:
        ben = await somebody(running)
        await join(running, home, ben)
        issued = await invite(sender, team, ben.user["email"])
        assert (await ben.post(by_token(issued, "/redeem"))).status == 200
        cat = await somebody(running)
        issued = await invite_to_org(sender, home, cat.user["email"], org_role="owner")
        assert (await cat.post(by_token(issued, "/redeem"))).status == 200
    refused(await ann.get("/v1/invites", params={"team_id": str(team)}), 403)


async def test_nobody_offers_more_than_he_holds(running: Running) -> None:
    """`owner` needs org.roles.manage; a custom role with the members' key alone makes members, no admins."""
    owner, admin, clerk = [await somebody(running) for _ in range(3)]
    home = await make_org(running, owner)
    await join(running, home, admin, "admin")
    await join(running, home, clerk)
    await give_keys(running, home, clerk, "org.members.manage")
    path = f"/v1/organizations/{home}/invites"
    for actor, allowed in ((owner, 3), (admin, 2), (clerk, 1)):
        for place, role in enumerate(("member", "admin", "owner")):
            body = {"email": f"{fresh('x')}@example.org", "org_role": role}
            bulk = {"emails": [f"{fresh('x')}@example.org"], "org_role": role}
            single, many = await actor.post(path, json=body), await actor.post(f"{path}/bulk", json=bulk)
            if place < allowed:
                assert (single.status, many.status) == (201, 200), role
            else:
                refused(single, 403)
                refused(many, 403)


async def test_who_may_revoke_an_invite(running: Running) -> None:
    """The invited person and members may not; for strangers, and by the wrong route, it does not exist."""
    owner, ann, ben, member, stranger = [await somebody(running) for _ in range(5)]
    team, home = await make_team(running, ann), await make_org(running, owner)
    other = await make_org(running, stranger)
    await join_team(running, team, member)
    to_team = await invite(ann, team, ben.user["email"])
    to_org = await invite_to_org(owner, home, ben.user["email"])
    path = f"/v1/invites/{to_team['id']}/revoke"
    for actor in (ben, member):
        refused(await actor.post(path), 403)
    unknown = await stranger.post(f"/v1/invites/{UNKNOWN}/revoke")
    refused(unknown, 404, "invite_not_found")
    for actor, wrong in (
        (stranger, path),
        (owner, f"/v1/invites/{to_org['id']}/revoke"),
        (stranger, f"/v1/organizations/{other}/invites/{to_org['id']}/revoke"),
        (owner, f"/v1/organizations/{home}/invites/{to_team['id']}/revoke"),
    ):
        answer = await actor.post(wrong)
        assert (answer.status, answer.body) == (404, unknown.body)
    refused(await stranger.post(f"/v1/organizations/{home}/invites/{to_org['id']}/revoke"), 403)
    assert await status_of(running, to_team) == await status_of(running, to_org) == "pending"
    assert (await owner.post(f"/v1/organizations/{home}/invites/{to_org['id']}/revoke")).status == 200
    assert (await (await somebody(running, role="admin")).post(path)).status == 200
    for issued in (to_team, to_org):
        refused(await ben.post(by_token(issued, "/redeem")), 409, "invite_revoked")
    (entry,) = await audited(running, "invite.revoked", to_org["id"])
    assert (entry.scope_org_id, entry.after_state["status"]) == (home, "revoked")


async def test_invites_expire_after_seven_days(running: Running) -> None:
    ann = await somebody(running)
    issued = await invite(ann, await make_team(running, ann), "x@example.org")
    row = await running.platform.database.read(lambda session: session.get_one(Invite, issued["id"]))
    assert abs(row.expires_at - row.created_at - timedelta(days=7)) < timedelta(seconds=5)
