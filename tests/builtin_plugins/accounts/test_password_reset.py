"""Back to an account by e-mail, through a real mail server, and what it tells strangers: nothing."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
import pytest_asyncio
from sqlalchemy import func, select, text, update
from sqlalchemy.util.concurrency import await_

from builtin_plugins.accounts.api import ACCOUNTS, ADMINISTRATION
from kernel.auth.models import Account, AuditEntry, PasswordReset
from kernel.db.base import utc_now
from kernel.db.tables import JobRecord
from kernel.sdk import Plugin, Unit, hookimpl
from kernel.sdk.accounts import operator_of
from kernel.testing import Reply, Running, Start
from tests.fakes.own_clock import OwnClock
from tests.fakes.rows import execute
from tests.fakes.smtp_server import Mailbox, smtp_server
from tests.fakes.statements import statements
from tests.fakes.waiting import eventually

REQUEST, CONFIRM = "/v1/auth/password-reset/request", "/v1/auth/password-reset/confirm"
CLIENT = {"PLATFORM_CLIENT_URL": "https://client.example.org/app/"}
LINK = re.compile(r"https://client\.example\.org/app/reset-password#token=(\S+)")


@pytest_asyncio.fixture
async def mailbox() -> AsyncIterator[Mailbox]:
    async with smtp_server() as box:
        yield box


@pytest_asyncio.fixture
async def running(start_platform: Start, mailbox: Mailbox) -> Running:
    """A platform that sends e-mail and knows its web client."""
    return await start_platform(env={**mailbox.env, **CLIENT})


async def ask(running: Running, email: str) -> Reply:
    return await running.anonymous.post(REQUEST, json={"email": email})


async def confirm(running: Running, token: str, password: str = "a new password") -> Reply:
    return await running.anonymous.post(CONFIRM, json={"token": token, "new_password": password})


async def token_for(running: Running, mailbox: Mailbox, email: str) -> str:
    """Ask, let the worker send, and read the link."""
    assert (await ask(running, email)).status == 202
    await running.run_jobs()
    match = LINK.search(mailbox.letters[-1].get_content())
    assert match is not None
    return match[1]


class TestOff:
    async def test_without_a_mail_server(self, start_platform: Start) -> None:
        running = await start_platform()
        for answer in (await ask(running, "a@example.org"), await confirm(running, "token")):
            assert (answer.status, answer.json()["code"]) == (404, "mail_off")
        capabilities = (await running.anonymous.get("/v1/auth/capabilities")).json()
        assert capabilities["password_reset_email"] is False
        assert capabilities["password_reset_link_minutes"] is None


class TestReset:
    async def test_the_whole_way(self, running: Running, mailbox: Mailbox) -> None:
        """Asked, sent, opened: the password is new, all sessions have ended, the link works no more."""
        ana = await running.user("ana")
        token = await token_for(running, mailbox, "ANA@example.org")
        letter = mailbox.letters[0]
        assert (letter["To"], letter["From"]) == ("ana@example.org", "Platform <platform@example.org>")
        assert "60 minutes" in letter.get_content()
        assert (await ana.get("/v1/auth/capabilities")).status == 200
        answer = await confirm(running, token)
        assert (answer.status, answer.body) == (204, b"")
        assert (await ana.get("/v1/auth/capabilities")).status == 401
        assert (await ana.post("/v1/auth/refresh")).status == 401
        await running.sign_in("ana", "a new password")
        old = {"username": "ana", "password": ana.password}
        assert (await running.anonymous.post("/v1/auth/login", json=old)).status == 401
        again = await confirm(running, token)
        assert (again.status, again.json()["code"]) == (400, "bad_reset_token")

    async def test_capabilities(self, running: Running) -> None:
        """A sign-in page may offer it, and say for how long a link works."""
        capabilities = (await running.anonymous.get("/v1/auth/capabilities")).json()
        assert capabilities["password_reset_email"] is True
        assert capabilities["password_reset_link_minutes"] == 60

    async def test_without_a_client(self, start_platform: Start, mailbox: Mailbox) -> None:
        """Where no web client is known the e-mail carries the token itself."""
        running = await start_platform(env=mailbox.env)
        await running.user("ana")
        await ask(running, "ana@example.org")
        await running.run_jobs()
        lines = mailbox.letters[0].get_content().splitlines()
        assert [(await confirm(running, line)).status for line in lines if len(line) == 43] == [204]

    async def test_only_a_hash_is_kept(self, running: Running, mailbox: Mailbox) -> None:
        """Neither the jobs nor the tokens in the database contain the token, before or after it is sent."""
        await running.user("ana")
        token = await token_for(running, mailbox, "ana@example.org")
        hashes, payloads = await running.platform.database.read(
            lambda session: [
                session.scalars(select(column)).all()
                for column in (PasswordReset.token_hash, JobRecord.payload)
            ]
        )
        assert len(hashes) == 1 and token not in hashes[0]
        assert token not in str(payloads)

    async def test_it_clears_must_change(self, running: Running, mailbox: Mailbox) -> None:
        await running.user("ana")
        await execute(running.platform.database, update(Account).values(must_change_password=True))
        await confirm(running, await token_for(running, mailbox, "ana@example.org"))
        assert (await running.sign_in("ana", "a new password")).user["must_change_password"] is False

    async def test_plugins_hear_of_it_and_it_is_audited(
        self, start_platform: Start, mailbox: Mailbox
    ) -> None:
        """Plugins hear of the reset in its transaction; the audit log has the address of the confirmation."""
        heard: list[str] = []

        class Listening(Plugin):
            name = "listening"

            @hookimpl
            def on_account_event(self, unit: Unit, account: Account, change: str) -> None:
                heard.append(change)

        running = await start_platform(
            Listening, env={**mailbox.env, "PLATFORM_CLIENT_URL": "https://client.example.org/app"}
        )
        await running.user("ana")
        await confirm(running, await token_for(running, mailbox, "ana@example.org"))
        assert heard[-1] == "password_reset"
        query = select(AuditEntry).where(AuditEntry.action == "account.password_reset")
        entry = await running.platform.database.read(lambda session: session.scalars(query).one())
        assert (entry.actor_id, entry.ip_address, entry.after_state) == (None, "127.0.0.1", {"mode": "email"})


class TestDeadTokens:
    @pytest.mark.parametrize("token", ["x", "a" * 43, "ü" * 43, "a" * 256])
    async def test_unknown(self, running: Running, token: str) -> None:
        assert (await confirm(running, token)).status == 400

    async def test_expired(self, running: Running, mailbox: Mailbox) -> None:
        await running.user("ana")
        token = await token_for(running, mailbox, "ana@example.org")
        await execute(
            running.platform.database,
            update(PasswordReset).values(expires_at=utc_now() - timedelta(seconds=1)),
        )
        assert (await confirm(running, token)).status == 400

    async def test_by_the_clock_of_the_database(
        self, start_platform: Start, mailbox: Mailbox, postgres_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A link sent by one machine works on another whose clock is wrong, in either direction."""
        env = {**mailbox.env, **CLIENT, "DATABASE_URL": postgres_url}
        running, clock = await start_platform(env=env), OwnClock(monkeypatch)
        await running.user("ana")
        for sender, receiver in ((0, 7200), (-7200, 0)):
            clock.by(sender)
            token = await token_for(running, mailbox, "ana@example.org")
            clock.by(receiver)
            assert (await confirm(running, token)).status == 204

    async def test_replaced(self, running: Running, mailbox: Mailbox) -> None:
        await running.user("ana")
        older = await token_for(running, mailbox, "ana@example.org")
        newer = await token_for(running, mailbox, "ana@example.org")
        assert (await confirm(running, older)).status == 400
        assert (await confirm(running, newer)).status == 204

    @pytest.mark.parametrize("way", ["changed", "reset", "deactivated", "linked"])
    async def test_overtaken(self, running: Running, mailbox: Mailbox, way: str) -> None:
        ana = await running.user("ana")
        administration, number = running.platform.resource(ADMINISTRATION), ana.user["id"]
        token = await token_for(running, mailbox, "ana@example.org")
        if way == "changed":
            body = {"current_password": ana.password, "new_password": "chosen by ana"}
            assert (await ana.post("/v1/auth/change-password", json=body)).status == 200
        elif way == "reset":
            await administration.reset_password(operator_of(running.platform), number, "generate", None)
        elif way == "deactivated":
            await administration.set_active(operator_of(running.platform), number, False)
            await administration.set_active(operator_of(running.platform), number, True)
        else:
            await execute(running.platform.database, update(Account).values(sso_issuer="i", sso_subject="s"))
        assert (await confirm(running, token)).status == 400

    async def test_used_at_once(
        self, start_platform: Start, mailbox: Mailbox, database_url: str | None
    ) -> None:
        """Of several who use one token at the same moment, one succeeds."""
        running = await start_platform(
            env={
                **mailbox.env,
                "DATABASE_URL": database_url,
                "PLATFORM_CLIENT_URL": "https://client.example.org/app",
            }
        )
        await running.user("ana")
        token = await token_for(running, mailbox, "ana@example.org")
        answers = await asyncio.gather(*(confirm(running, token, f"password {n}") for n in range(4)))
        assert sorted(answer.status for answer in answers) == [204, 400, 400, 400]


async def test_confirmed_while_an_administrator_resets(
    start_platform: Start, mailbox: Mailbox, postgres_url: str
) -> None:
    """The two take account and token in one order: the later one waits, and neither breaks off."""
    running = await start_platform(env={**mailbox.env, **CLIENT, "DATABASE_URL": postgres_url})
    ana = await running.user("ana")
    token = await token_for(running, mailbox, "ana@example.org")
    waiting = text(
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    confirmations: list[asyncio.Task[Reply]] = []

    async def it_waits() -> bool:
        return await running.platform.database.read(lambda session: bool(session.scalar(waiting)))

    def confirmed_meanwhile(_unit: Unit, _account: Account) -> None:
        confirmations.append(asyncio.create_task(confirm(running, token)))
        await_(eventually(it_waits, 20))

    temporary = await running.platform.resource(ADMINISTRATION).reset_password(
        operator_of(running.platform), ana.user["id"], "generate", None, check=confirmed_meanwhile
    )
    answer = await confirmations[0]
    assert (answer.status, answer.json()["code"]) == (400, "bad_reset_token")
    await running.sign_in("ana", temporary)


class TestNothingIsTold:
    async def test_the_same_answer_and_the_same_statements(self, running: Running, mailbox: Mailbox) -> None:
        """Known, unknown, deactivated, SSO: one status, one body, and the same work in the database."""
        for name in ("known", "off", "sso"):
            await running.user(name)
        linked = {"sso_issuer": "i", "sso_subject": "s", "password_hash": None}
        await execute(
            running.platform.database,
            update(Account).where(Account.username == "off").values(is_active=False),
            update(Account).where(Account.username == "sso").values(**linked),
        )
        await ask(running, "first@example.org")  # the first job of a process also opens the queue
        seen = {}
        for name in ("known", "off", "sso", "nobody"):
            with statements() as done:
                answer = await ask(running, f"{name}@example.org")
            seen[name] = (answer.status, answer.body, tuple(done))
        assert len(set(seen.values())) == 1, seen
        assert seen["known"][0] == 202
        await running.run_jobs()
        assert [letter["To"] for letter in mailbox.letters] == ["known@example.org"]

    async def test_too_many_for_one_address(self, start_platform: Start, mailbox: Mailbox) -> None:
        """One address gets few e-mails; who asks for more is answered as ever, with the same work."""
        running = await start_platform(
            env={**mailbox.env, "RATE_LIMIT_ENABLED": "true", "AUTH_RATE_LIMIT_PER_MINUTE": "100"}
        )
        await running.platform.resource(ACCOUNTS).register("ana", "ana@example.org", "12345678")
        answers, work = [], []
        for _ in range(6):
            with statements() as done:
                answers.append(await ask(running, "ana@example.org"))
            work.append(tuple(done))
        assert {(answer.status, answer.body) for answer in answers} == {(202, answers[0].body)}
        assert len(set(work[1:])) == 1
        await running.run_jobs()
        assert len(mailbox.letters) == 3

    async def test_too_many_from_one_client(self, start_platform: Start, mailbox: Mailbox) -> None:
        running = await start_platform(env={**mailbox.env, "RATE_LIMIT_ENABLED": "true"})
        answers = [await ask(running, f"n{number}@example.org") for number in range(21)]
        statuses = [answer.status for answer in answers]
        assert statuses[:10] == [202] * 10
        assert 429 in statuses[10:]  # of 21 in at most two minutes of the clock, ten of each are answered
        assert int(answers[statuses.index(429)].headers["Retry-After"]) <= 60


class TestTheMailServer:
    async def test_away_for_a_while(self, running: Running, mailbox: Mailbox) -> None:
        """While the server takes nothing the job is tried again, and one letter arrives, with a live link."""
        await running.user("ana")
        mailbox.refusal = "451 try later"
        await ask(running, "ana@example.org")
        sending = asyncio.create_task(running.run_jobs())
        async with asyncio.timeout(20):
            await mailbox.tried.wait()
            mailbox.refusal = ""
            await sending
        assert len(mailbox.letters) == 1
        found = LINK.search(mailbox.letters[0].get_content())
        assert found is not None
        assert (await confirm(running, found[1])).status == 204

    async def test_refused_for_good(
        self, running: Running, mailbox: Mailbox, caplog: pytest.LogCaptureFixture
    ) -> None:
        """A recipient that the server refuses is tried once, and logged without the address."""
        await running.user("ana")
        mailbox.refusal = "550 no such user"
        await ask(running, "ana@example.org")
        await running.run_jobs()
        assert (mailbox.tries, mailbox.letters) == (1, [])
        assert caplog.text and "ana@example.org" not in caplog.text

    async def test_a_request_waits_for_no_mail(self, running: Running, mailbox: Mailbox) -> None:
        """The request is stored and answered; nothing is sent before a worker takes the job."""
        await running.user("ana")
        await ask(running, "ana@example.org")
        assert mailbox.tries == 0
        assert (
            await running.platform.database.read(
                lambda session: session.scalar(select(func.count()).select_from(JobRecord))
            )
            == 1
        )
