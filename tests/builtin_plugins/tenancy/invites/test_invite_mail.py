"""Invites by e-mail, through a mail server on a socket; and how often strangers may look at invites."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from kernel.testing import Start
from tests.builtin_plugins.tenancy.invite_support import by_token, invite, invite_to_org
from tests.builtin_plugins.tenancy.tenancy_support import make_org, make_team, somebody
from tests.fakes.smtp_server import Mailbox, smtp_server


@pytest_asyncio.fixture
async def mailbox() -> AsyncIterator[Mailbox]:
    async with smtp_server() as box:
        yield box


async def test_an_invite_is_mailed(start_platform: Start, mailbox: Mailbox) -> None:
    """With the link of the client, from which the invite can be redeemed, to its address alone."""
    env = {**mailbox.env, "PLATFORM_CLIENT_URL": "https://client.example.org/app/"}
    running = await start_platform("tenancy", env=env)
    ann, ben = await somebody(running), await somebody(running)
    team = await make_team(running, ann)
    issued = await invite(ann, team, ben.user["email"], team_role="team_admin")
    assert issued["email_sent"] is True
    assert issued["link"] == f"https://client.example.org/app/invites#token={issued['token']}"
    (letter,) = mailbox.letters
    name = (await ann.get(f"/v1/teams/{team}")).json()["name"]
    assert (letter["To"], letter["Subject"]) == (ben.user["email"], f"Invitation to the team {name}")
    content = letter.get_content()
    assert issued["link"] in content
    assert " link" in issued["how_to_accept"] and issued["token"] not in issued["how_to_accept"]
    assert ann.user["username"] in content
    assert "as team admin" in content
    listed = (await ann.get("/v1/invites", params={"team_id": str(team)})).json()["items"]
    assert not {"token", "link"} & listed[0].keys()
    assert (await ben.post(by_token(issued, "/redeem"))).status == 200


async def test_without_a_client_the_token_is_mailed(start_platform: Start, mailbox: Mailbox) -> None:
    running = await start_platform("tenancy", env=mailbox.env)
    owner = await somebody(running)
    issued = await invite_to_org(owner, await make_org(running, owner), "x@example.org")
    assert (issued["link"], issued["email_sent"]) == (None, True)
    assert f"POST {by_token(issued, '/redeem')}" in issued["how_to_accept"]
    content = mailbox.letters[0].get_content()
    assert issued["token"] in content
    assert "http" not in content
    assert "accept_management" in issued["how_to_accept"]
    assert "reset the password" in content.replace("\n", " "), "the e-mail says what managing means"


async def test_a_failing_mail_server_loses_no_invite(start_platform: Start, mailbox: Mailbox) -> None:
    """The invite stands, and the answer says that the e-mail was not sent."""
    running = await start_platform("tenancy", env=mailbox.env)
    mailbox.refusal = "550 no such user"
    ann, ben = await somebody(running), await somebody(running)
    team = await make_team(running, ann)
    issued = await invite(ann, team, ben.user["email"])
    assert (issued["email_sent"], mailbox.letters) == (False, [])
    assert (await ben.post(by_token(issued, "/redeem"))).status == 200


async def test_a_repeated_request_mails_nothing(start_platform: Start, mailbox: Mailbox) -> None:
    """The response says again whether the first one's e-mail was sent."""
    running = await start_platform("tenancy", env=mailbox.env)
    # Operators copy a home's secrets to other machines after the first start.
    assert (running.platform.settings.home / "secrets" / "invite-tokens").exists()
    ann = await somebody(running)
    team = await make_team(running, ann)
    mailbox.refusal = "550 no such user"
    for _ in range(2):
        assert (await invite(ann, team, "a@example.org", idempotency_key="k"))["email_sent"] is False
    mailbox.refusal = ""
    for _ in range(2):
        assert (await invite(ann, team, "b@example.org", idempotency_key="k"))["email_sent"] is True
    assert (await invite(ann, team, "a@example.org", idempotency_key="k"))["email_sent"] is False
    assert [letter["To"] for letter in mailbox.letters] == ["b@example.org"]


async def test_looking_at_tokens_is_limited(start_platform: Start) -> None:
    """For each client address; guessing has an end, with or without an account."""
    env = {
        "RATE_LIMIT_ENABLED": "true",
        "RATE_LIMIT_PER_MINUTE": "1000",
        "PLATFORM_TENANCY_INVITE_LOOKUPS_PER_MINUTE": "3",
    }
    running = await start_platform("tenancy", env=env)
    looks = [await running.anonymous.get(f"/v1/invites/by-token/{number}") for number in range(4)]
    assert [one.status for one in looks] == [404, 404, 404, 429]
    ann, ben = await somebody(running), await somebody(running)
    tries = [await actor.post("/v1/invites/by-token/x/redeem") for actor in (ann, ann, ben, ben)]
    assert [one.status for one in tries] == [404, 404, 404, 429]


async def test_names_and_addresses_of_the_world(start_platform: Start, mailbox: Mailbox) -> None:
    """Letters beyond ASCII arrive as they are, in the subject, the text and the address."""
    running = await start_platform("tenancy", env=mailbox.env)
    ann = await somebody(running)
    name = "Forschung & Müller – 研究 \U0001f600 <b>x</b>"
    team = (await ann.post("/v1/teams", json={"name": name})).json()["id"]
    issued = await invite(ann, team, "jürgen@exämple.org")
    assert issued["email_sent"] is True
    (letter,) = mailbox.letters
    assert letter["Subject"].endswith(f" {name}")
    assert name in letter.get_content()
