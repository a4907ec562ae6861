"""Deleting an account: who may, what is gone at once, what a job removes, and what others keep."""

from __future__ import annotations

import asyncio
import signal
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from sqlalchemy import select, update

from builtin_plugins.accounts.erasure import FINISH_REMOVALS
from builtin_plugins.owner_secrets.api import OWNER_SECRETS, SecretOwner
from kernel.auth.models import Account, AccountRemoval, OwnerSecret
from kernel.db.base import utc_now
from kernel.sdk import Unit
from kernel.sdk.accounts import TOKENS
from kernel.testing import Actor, Running, Start, audited, environment, somebody
from tests.fakes.deleting import delete_account, deletion, job_of
from tests.fakes.kept import Kept
from tests.fakes.processes import running_process
from tests.fakes.rows import execute
from tests.fakes.shelf_of_things import DyingPlugin, ThingsPlugin
from tests.fakes.waiting import eventually

together = pytest.mark.asyncio(loop_scope="session")

ME = "/v1/auth/me"
USERS = "/v1/auth/users"


@pytest.fixture(scope="session")
def shelves() -> dict[str, ThingsPlugin]:
    return {"sqlite": ThingsPlugin(), "postgresql": ThingsPlugin()}


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=["sqlite", "postgresql"])
async def running(request: pytest.FixtureRequest, kept: Kept, shelves: dict[str, ThingsPlugin]) -> Running:
    """A platform with a stranger's plugin."""
    return await kept.platform("deletion", request.param, "owner_secrets", shelves[request.param])


@pytest.fixture
def things(running: Running, shelves: dict[str, ThingsPlugin]) -> ThingsPlugin:
    return shelves["sqlite" if running.platform.database.url.startswith("sqlite") else "postgresql"]


async def row_of(running: Running, account_id: int) -> dict[str, Any]:
    query = select(*Account.__table__.columns).where(Account.id == account_id)
    return await running.platform.database.read(lambda session: dict(session.execute(query).mappings().one()))


async def night(running: Running, leaving: Actor, hours: float = 2) -> None:
    """As if the account had been deleted some hours ago, run what runs every night."""
    was = update(Account).where(Account.id == leaving.user["id"])
    await execute(running.platform.database, was.values(deleted_at=utc_now() - timedelta(hours=hours)))
    await running.platform.database.write(Unit.enqueue, FINISH_REMOVALS, FINISH_REMOVALS.payload())
    await running.run_jobs()


@together
class TestWho:
    async def test_unknown_and_twice(self, running: Running) -> None:
        assert (await deletion(running, 2**31 - 1)).status == 404
        victim = await somebody(running)
        assert (await deletion(running, victim)).status == 202
        assert (await deletion(running, victim)).status == 404
        admin = await somebody(running, platform_admin=True)
        path = f"{USERS}/{victim.user['id']}"
        for change in ("status", "role"):
            body = {"is_active": True} if change == "status" else {"role": "admin"}
            assert (await admin.patch(f"{path}/{change}", json=body)).status == 404
        assert (await admin.post(f"{path}/reset-password", json={"mode": "generate"})).status == 404

    async def test_a_plugin_forbids_it(self, running: Running, things: ThingsPlugin) -> None:
        victim = await somebody(running)
        things.keeper = victim.user["id"]
        answer = await deletion(running, victim)
        assert answer.status == 409 and "archive" in answer.detail
        assert (await row_of(running, victim.user["id"]))["username"] == victim.user["username"]
        assert (await victim.post("/v1/auth/refresh")).status == 200


@together
class TestOneself:
    async def test_with_the_password(self, running: Running) -> None:
        """A wrong or missing password changes nothing; the right one ends it all."""
        ann = await running.user()
        for body in ({}, {"password": "wrong"}):
            answer = await ann.delete(ME, json=body)
            assert (answer.status, answer.json()["code"]) == (400, "wrong_password")
        answer = await ann.delete(ME, json={"password": ann.password})
        assert answer.status == 202
        assert (await ann.get(ME.replace("/me", "/platform-admin/claim"))).status == 401
        await running.run_jobs()
        assert (await job_of(running, answer)).status == "done"

    async def test_without_a_password(self, running: Running) -> None:
        """Whoever has no password must have signed in within the last few minutes."""
        ann = await somebody(running)
        tokens, account = running.platform.resource(TOKENS), await row_of(running, ann.user["id"])
        old = tokens.mint(Account(**account), {}, auth_time=int(time.time()) - 700)
        answer = await Actor(running, old).delete(ME, json={})
        assert (answer.status, answer.json()["code"]) == (403, "sign_in_again")
        assert (await ann.delete(ME, json={})).status == 202


@together
class TestAtOnce:
    async def test_nobody_can_use_it(self, running: Running) -> None:
        """Before any job has run: no request, refresh, sign-in; it is in no list."""
        ann = await running.user()
        admin = await somebody(running, platform_admin=True)
        assert (await deletion(running, ann)).status == 202
        assert (await ann.get("/v1/jobs")).status == 401
        assert (await ann.post("/v1/auth/refresh")).status == 401
        login = {"username": ann.user["username"], "password": ann.password}
        assert (await running.anonymous.post("/v1/auth/login", json=login)).status == 401
        for text in (ann.user["username"], f"#{ann.user['id']}"):
            found = await admin.get(USERS, params={"q": text})
            assert found.json()["total"] == 0

    async def test_a_stream_ends(self, running: Running) -> None:
        """Responses being streamed to its sessions end with the account."""
        ann = await somebody(running)
        headers = {"Authorization": f"Bearer {ann.token}"}
        async with running.session.get(f"{running.url}/v1/things/events", headers=headers) as stream:
            assert b"tick" in await stream.content.readline()
            assert (await deletion(running, ann)).status == 202
            async with asyncio.timeout(30):
                assert b"session_revoked" in await stream.content.read()

    async def test_the_name_is_free(self, running: Running) -> None:
        """Somebody else may take name and address, and gets another id."""
        ann = await running.user()
        await delete_account(running, ann)
        body = {"username": ann.user["username"], "email": ann.user["email"], "password": "battery staple"}
        again = await running.anonymous.post("/v1/auth/register", json=body)
        assert again.status == 201 and again.json()["user"]["id"] > ann.user["id"]
        fresh = await running.sign_in(ann.user["username"], "battery staple")
        assert (await ann.get("/v1/jobs")).status == 401 and (await fresh.get("/v1/jobs")).status == 200

    async def test_the_row_tells_nothing(self, running: Running) -> None:
        """Neither the row nor the entry of the audit log says who it was."""
        ann = await running.user()
        was = update(Account).where(Account.id == ann.user["id"])
        sso = {"sso_issuer": "https://id", "sso_subject": f"s{ann.user['id']}", "linked_at": utc_now()}
        await execute(running.platform.database, was.values(**sso))
        await delete_account(running, ann)
        row = await row_of(running, ann.user["id"])
        name = f"deleted account #{ann.user['id']}"
        assert {row[key] for key in ("username", "username_key", "email", "email_key")} == {name}
        assert [row[key] for key in ("password_hash", *sso)] == [None] * 4
        assert not row["is_active"] and row["deleted_at"] is not None
        (entry,) = await audited(running, "account.deleted", ann.user["id"])
        assert (entry.before_state, entry.after_state) == (None, None) and entry.actor_id is not None

    async def test_secrets(self, running: Running) -> None:
        ann, bob = await somebody(running), await somebody(running)
        secrets = running.platform.resource(OWNER_SECRETS)
        for one in (ann, bob):
            owner = SecretOwner("account", one.user["id"])
            await running.platform.database.write(secrets.put, owner, "things.key", "s3cret")
        await delete_account(running, ann)
        ids = select(OwnerSecret.owner_id)
        left = await running.platform.database.read(lambda session: list(session.scalars(ids)))
        assert str(ann.user["id"]) not in left and str(bob.user["id"]) in left

    async def test_two_at_the_same_time(self, running: Running) -> None:
        ann = await somebody(running)
        answers = await asyncio.gather(*(deletion(running, ann) for _ in range(2)))
        assert sorted(answer.status for answer in answers) == [202, 404]

    async def test_each_other_at_the_same_time(self, running: Running) -> None:
        """Of two Platform Admins who delete each other, one remains: the other may not act any more."""
        ann = await somebody(running, platform_admin=True)
        bob = await somebody(running, platform_admin=True)
        answers = await asyncio.gather(
            ann.delete(f"{USERS}/{bob.user['id']}"), bob.delete(f"{USERS}/{ann.user['id']}")
        )
        assert sorted(answer.status for answer in answers) == [202, 401]


@together
class TestWhatOthersUse:
    async def test_is_named(self, running: Running, things: ThingsPlugin) -> None:
        """Without an heir, nothing is deleted, and the answer lists it."""
        ann = await running.user()
        things.shared[ann.user["id"]] = ["atlas"]
        for answer in (
            await deletion(running, ann),
            await ann.delete(ME, json={"password": ann.password}),
        ):
            assert (answer.status, answer.json()["code"]) == (409, "still_shared")
            thing = {"kind": "thing", "id": "atlas", "name": "atlas", "shared_with": "shared"}
            assert answer.detail["shared"] == [thing] and "'atlas'" in answer.detail["message"]
        assert (await ann.post("/v1/auth/refresh")).status == 200

    async def test_goes_to_the_heir(self, running: Running, things: ThingsPlugin) -> None:
        ann, bob = await somebody(running), await somebody(running)
        things.shared[ann.user["id"]] = ["globe"]
        await delete_account(running, ann, heir_id=bob.user["id"])
        assert things.shared[bob.user["id"]] == ["globe"] and ann.user["id"] not in things.shared

    async def test_not_every_account_can_be_the_heir(self, running: Running, things: ThingsPlugin) -> None:
        """Neither the account itself, nor an unknown, deactivated or deleted one."""
        ann, gone = await somebody(running), await somebody(running)
        await delete_account(running, gone)
        asleep = await somebody(running, is_active=False)
        for heir in (ann.user["id"], gone.user["id"], asleep.user["id"], 2**31 - 1, 0):
            assert (await deletion(running, ann, heir_id=heir)).status == 422, heir


@together
class TestJob:
    async def test_plugins_remove_their_part(self, running: Running, things: ThingsPlugin) -> None:
        """By id in the job, by name before the name is gone; what belongs to others stays."""
        ann, bob = await somebody(running), await somebody(running)
        things.private |= {ann.user["id"]: ["diary"], bob.user["id"]: ["letters"]}
        job = await delete_account(running, ann)
        assert ann.user["id"] not in things.private and things.private[bob.user["id"]] == ["letters"]
        assert things.names[-1] == ann.user["username"]
        assert (job.subject, job.progress.done) == (str(ann.user["id"]), job.progress.total)

    async def test_a_plugin_that_fails_is_asked_again(self, running: Running, things: ThingsPlugin) -> None:
        """A few failures delay the job and change nothing else."""
        ann = await somebody(running)
        things.private[ann.user["id"]] = ["diary"]
        things.failures = 2
        await delete_account(running, ann)
        assert things.calls.count(ann.user["id"]) == 3 and ann.user["id"] not in things.private

    async def test_a_plugin_that_keeps_failing(self, running: Running, things: ThingsPlugin) -> None:
        """The job names it and ends as failed; at night it is asked again, until it succeeds."""
        ann = await somebody(running)
        things.private[ann.user["id"]] = ["diary"]
        things.failures = 21
        answer = await deletion(running, ann)
        await running.run_jobs()
        job = await job_of(running, answer)
        assert job.status == "failed" and job.error is not None and "'things'" in job.error
        await night(running, ann)
        assert ann.user["id"] not in things.private
        calls = things.calls.count(ann.user["id"])
        await night(running, ann, hours=30)
        assert things.calls.count(ann.user["id"]) == calls

    async def test_what_a_request_stored_meanwhile(self, running: Running, things: ThingsPlugin) -> None:
        """What a request stored after the job was done is removed on a later night."""
        ann = await somebody(running)
        await delete_account(running, ann)
        things.private[ann.user["id"]] = ["a late note"]
        await night(running, ann, hours=0.5)
        assert ann.user["id"] in things.private
        early = update(AccountRemoval).where(AccountRemoval.account_id == ann.user["id"])
        await execute(running.platform.database, early.values(removed_at=utc_now() - timedelta(hours=30)))
        await night(running, ann, hours=30)
        assert ann.user["id"] not in things.private

    async def test_a_secret_stored_meanwhile(self, running: Running) -> None:
        """A secret that a running request stores after the deletion is removed, too."""
        ann = await somebody(running)
        secrets, owner = running.platform.resource(OWNER_SECRETS), SecretOwner("account", ann.user["id"])
        await delete_account(running, ann)
        await running.platform.database.write(secrets.put, owner, "things.key", "s3cret")
        early = update(AccountRemoval).where(AccountRemoval.account_id == ann.user["id"])
        await execute(running.platform.database, early.values(removed_at=utc_now() - timedelta(hours=30)))
        await night(running, ann, hours=30)
        names = await running.platform.database.read(secrets.list, owner)
        assert names == []

    async def test_it_can_not_be_cancelled(self, running: Running, things: ThingsPlugin) -> None:
        ann, admin = await somebody(running), await somebody(running, role="admin")
        things.private[ann.user["id"]] = ["diary"]
        answer = await deletion(running, ann)
        assert (await admin.post(f"{answer.json()['job']}/cancel")).status == 202
        await running.run_jobs()
        assert (await job_of(running, answer)).status == "cancelled"
        assert ann.user["id"] not in things.private


async def test_the_last_of_a_kind(start_platform: Start) -> None:
    """The last instance administrator and the last Platform Admin can't be deleted, even by themselves."""
    alone = await start_platform()
    ada = await alone.user("ada", role="admin")  # the first to sign in is Platform Admin
    own = {"json": {"password": ada.password}}
    refused = await ada.delete(ME, **own)
    assert (refused.status, refused.json()["code"]) == (409, "last_platform_admin")
    await execute(alone.platform.database, update(Account).values(platform_admin=False))
    refused = await ada.delete(ME, **own)
    assert (refused.status, refused.json()["code"]) == (409, "last_admin")
    await somebody(alone, role="admin")
    assert (await ada.delete(ME, **own)).status == 202


@pytest.mark.durability
async def test_killed_in_the_middle(
    start_platform: Start, platform_home: Path, database_url: str | None, tmp_path: Path
) -> None:
    """If a worker dies during a removal, the next one starts again."""
    here = await start_platform(DyingPlugin, env={"DATABASE_URL": database_url})
    ann = await somebody(here)
    answer = await deletion(here, ann)
    env = environment(platform_home, {"DATABASE_URL": database_url})
    command = ("-m", "tests.fakes.removal_process")
    async with running_process(*command, env={**env, "DIES": "1"}, log=tmp_path / "first.log") as worker:
        assert await worker.wait(60) == -signal.SIGKILL
    assert (await job_of(here, answer)).status == "running"

    async def done() -> bool:
        return (await job_of(here, answer)).status == "done"

    async with running_process(*command, env=env, log=tmp_path / "second.log"):
        await eventually(done, 120)
    assert (platform_home / f"removed-{ann.user['id']}").exists()
