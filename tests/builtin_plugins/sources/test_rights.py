"""Who may read a document at its source may read it here, and nobody else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from sqlalchemy import update

from builtin_plugins.rag.models import Document
from builtin_plugins.sources.api import SourceGrant, SourceGroup, SourcePerson, SourceUnreachable
from builtin_plugins.sources.models import SourceRecord
from builtin_plugins.sources.services.rights.leaks import find_leaks, find_stored_leaks
from builtin_plugins.sources.services.rights.refreshing import REFRESH_RIGHTS, SourceRightsPayload
from kernel.sdk import Account, Finding, Unit, utc_now
from kernel.testing import Actor, somebody
from tests.builtin_plugins.sources.conftest import Desk

pytestmark = pytest.mark.asyncio(loop_scope="session")


class GuardedDesk:
    """A guarded source of a shared knowledge base, and people who see that."""

    def __init__(self, desk: Desk, bob: Actor, cleo: Actor) -> None:
        self.desk, self.shelf, self.bob, self.cleo = desk, desk.shelf, bob, cleo
        for actor in (bob, cleo):
            self.join(actor)

    def join(self, actor: Actor, email: str | None = None) -> None:
        """Have an account at the source, with the same address."""
        name = actor.user["username"]
        self.shelf.people[name] = SourcePerson(name, name, email or actor.user["email"])

    def put(self, path: str, *people: Actor, groups: tuple[str, ...] = (), everybody: bool = False) -> None:
        self.shelf.contents[path] = f"What {path} says.".encode()
        self.grant(path, *people, groups=groups, everybody=everybody)

    def grant(self, path: str, *people: Actor, groups: tuple[str, ...] = (), everybody: bool = False) -> None:
        self.shelf.grants[path] = SourceGrant([one.user["username"] for one in people], groups, everybody)

    def group(self, name: str, *people: Actor, groups: tuple[str, ...] = ()) -> None:
        self.shelf.groups[name] = SourceGroup(name, name, [one.user["username"] for one in people], groups)

    async def add(self) -> dict[str, Any]:
        return await self.desk.add(kind="secretive")

    async def refresh(self) -> None:
        """Read the permissions, as happens between runs."""
        payload = SourceRightsPayload(source_id=self.desk.source)
        await self.desk.running.platform.database.write(lambda unit: unit.enqueue(REFRESH_RIGHTS, payload))
        await self.desk.running.run_jobs()

    async def readable(self, actor: Actor) -> set[str]:
        """The names of the documents that somebody reads here."""
        answer = await actor.get(f"/v1/rag/knowledge-bases/{self.desk.base}/documents")
        assert answer.status == 200, answer.body
        names = {one["filename"] for one in answer.json()["items"]}
        assert answer.json()["total"] == len(names)
        return names

    async def rights(self) -> dict[str, Any]:
        answer = await self.desk.ann.get(self.desk.path("/rights"))
        assert answer.status == 200, answer.body
        return dict(answer.json())


@pytest_asyncio.fixture(loop_scope="session")
async def guarded(desk: Desk) -> AsyncIterator[GuardedDesk]:
    shared = {"visibility": "shared"}
    assert (await desk.ann.patch(f"/v1/rag/knowledge-bases/{desk.base}", json=shared)).status == 200
    yield GuardedDesk(desk, await desk.running.user(), await desk.running.user())


async def test_people_read_here_what_they_may_read_there(guarded: GuardedDesk) -> None:
    """The owner and administrators, too; what came with no permission is read by nobody."""
    bob, cleo = guarded.bob, guarded.cleo
    guarded.group("inner", cleo)
    guarded.group("outer", groups=("inner",))
    guarded.put("bob.txt", bob)
    guarded.put("nested.txt", groups=("outer",))
    guarded.put("all.txt", everybody=True)
    guarded.put("none.txt")
    guarded.shelf.contents["unknown.txt"] = b"Of this, no permission can be read."
    assert (await guarded.add())["added"] == 5
    assert await guarded.readable(bob) == {"bob.txt", "all.txt"}
    assert await guarded.readable(cleo) == {"nested.txt", "all.txt"}
    admin = await somebody(guarded.desk.running, role="admin")
    for actor in (guarded.desk.ann, admin):
        assert await guarded.readable(actor) == {"all.txt"}
    assert (await guarded.rights())["unreadable"] == 2


@pytest.mark.parametrize("listed", [True, False])
async def test_a_change_there_is_one_here_without_fetching(guarded: GuardedDesk, *, listed: bool) -> None:
    """Given, taken, a group changed: between runs, and in a run whose listing says it."""
    bob, cleo, shelf = guarded.bob, guarded.cleo, guarded.shelf
    shelf.grants_listed = listed
    follow = guarded.desk.run if listed else guarded.refresh
    guarded.group("staff", bob)
    guarded.put("bob.txt", bob)
    guarded.put("staff.txt", groups=("staff",))
    await guarded.add()
    shelf.fetched.clear()
    guarded.grant("bob.txt", cleo)
    await follow()
    assert (await guarded.readable(bob), await guarded.readable(cleo)) == ({"staff.txt"}, {"bob.txt"})
    guarded.group("staff", cleo)
    await follow()
    assert (await guarded.readable(bob), await guarded.readable(cleo)) == (set(), {"staff.txt", "bob.txt"})
    del shelf.people[cleo.user["username"]]
    await follow()
    assert await guarded.readable(cleo) == set()
    assert shelf.fetched == []


async def test_a_moved_item_has_the_readers_of_its_new_place(guarded: GuardedDesk) -> None:
    guarded.put("open/a.txt", guarded.bob)
    await guarded.add()
    guarded.shelf.contents = {}
    guarded.put("closed/a.txt", guarded.cleo)
    guarded.shelf.contents["closed/a.txt"] = b"What open/a.txt says."
    assert (await guarded.desk.run())["moved"] == 1
    assert (await guarded.readable(guarded.bob), await guarded.readable(guarded.cleo)) == (set(), {"a.txt"})


async def test_permissions_that_have_not_changed_are_not_read(guarded: GuardedDesk) -> None:
    guarded.put("bob.txt", guarded.bob)
    guarded.shelf.mark = "1"
    await guarded.add()
    await guarded.refresh()
    read: list[str] = []
    guarded.shelf.reading_rights = read.append
    await guarded.refresh()
    assert read == ["mark"]
    guarded.shelf.mark = "2"
    guarded.grant("bob.txt", guarded.cleo)
    await guarded.refresh()
    assert (read, await guarded.readable(guarded.bob)) == (["mark", "mark", "directory", "grants"], set())


async def test_a_reading_that_was_cut_off_leaves_no_mark(guarded: GuardedDesk) -> None:
    """What it has stored is of another state than the mark stands for, which may come back."""
    shelf = guarded.shelf
    guarded.group("staff", guarded.bob)
    guarded.put("staff.txt", groups=("staff",))
    shelf.mark = "1"
    await guarded.add()
    await guarded.refresh()

    def cut_off(what: str) -> None:
        if what == "grants":
            raise SourceUnreachable("shelf.example.org does not answer")

    shelf.mark, shelf.reading_rights = "2", cut_off
    guarded.group("staff", guarded.cleo)
    await guarded.refresh()
    shelf.mark, shelf.reading_rights = "1", lambda _: None
    guarded.group("staff", guarded.bob)
    await guarded.refresh()
    assert await guarded.readable(guarded.bob) == {"staff.txt"}
    assert await guarded.readable(guarded.cleo) == set()


@pytest.mark.parametrize("broken", ["mark", "directory", "grants"])
async def test_permissions_that_cannot_be_read_count_for_a_while(guarded: GuardedDesk, broken: str) -> None:
    """Nothing is fetched meanwhile; after `PLATFORM_SOURCES_RIGHTS_HOURS`, nobody may read anything."""
    guarded.put("bob.txt", guarded.bob)
    guarded.put("all.txt", everybody=True)
    await guarded.add()

    def fail(what: str) -> None:
        if what == broken:
            raise SourceUnreachable("shelf.example.org does not answer")

    guarded.shelf.reading_rights = fail
    guarded.put("new.txt", guarded.bob)
    assert (await guarded.desk.run())["state"] == "failed"
    await guarded.refresh()
    assert await guarded.readable(guarded.bob) == {"bob.txt", "all.txt"}
    assert "shelf.example.org" in (await guarded.rights())["problem"]
    database, mine = guarded.desk.running.platform.database, SourceRecord.id == guarded.desk.source
    long_ago = update(SourceRecord).where(mine).values(rights_at=utc_now() - timedelta(hours=25))

    def age(unit: Unit) -> None:
        unit.session.execute(long_ago)

    await database.write(age)
    await guarded.refresh()
    assert (await guarded.readable(guarded.bob), (await guarded.rights())["is_closed"]) == (set(), True)
    guarded.shelf.reading_rights = lambda _: None
    await guarded.refresh()
    assert await guarded.readable(guarded.bob) == {"bob.txt", "all.txt"}


async def test_only_an_address_that_is_proven_counts(guarded: GuardedDesk) -> None:
    """Whoever registers with somebody's address is not that person."""
    running = guarded.desk.running
    impostor = await somebody(running)
    guarded.join(impostor)
    guarded.put("theirs.txt", impostor)
    await guarded.add()
    assert await guarded.readable(impostor) == set()
    rights = await guarded.rights()
    assert (rights["people"], rights["people_unmapped"]) == (3, 1)


async def test_a_subject_of_the_same_issuer_is_the_account(guarded: GuardedDesk) -> None:
    """Whatever their addresses are; the same subject of another issuer is somebody else."""
    bob, cleo = guarded.bob, guarded.cleo
    issuer, elsewhere = "https://id.example.org", "https://id.example.net"

    def sign_in(unit: Unit) -> None:
        for actor in (bob, cleo):
            account = unit.session.get_one(Account, actor.user["id"])
            account.sso_issuer, account.sso_subject = issuer, f"s-{account.username}"

    await guarded.desk.running.platform.database.write(sign_in)
    for actor, said in ((bob, issuer), (cleo, elsewhere)):
        name = actor.user["username"]
        guarded.shelf.people[name] = SourcePerson(name, name, None, issuer=said, subject=f"s-{name}")
    guarded.put("both.txt", bob, cleo)
    await guarded.add()
    assert await guarded.readable(bob) == {"both.txt"}
    assert await guarded.readable(cleo) == set()


async def test_addresses_that_only_look_alike_are_different_people(guarded: GuardedDesk) -> None:
    """Capitals of ASCII are all that mailboxes have in common: `ß` is not `ss`, the Kelvin sign no `k`."""
    running, name = guarded.desk.running, "kass." + guarded.desk.base[:8]
    actor = await running.user(name)
    alike = {
        "small": name,
        "capitals": name.upper(),
        "sharp": f"kaß{name[4:]}",
        "kelvin": f"\u212a{name[1:]}",
    }
    for who, mailbox in alike.items():
        guarded.shelf.people[who] = SourcePerson(who, who, f"{mailbox}@example.org")
        guarded.put(f"{who}.txt")
        guarded.shelf.grants[f"{who}.txt"] = SourceGrant([who])
    await guarded.add()
    assert await guarded.readable(actor) == {"small.txt", "capitals.txt"}


async def test_accounts_are_followed(guarded: GuardedDesk) -> None:
    """One that comes later is the person there; a deactivated one no longer."""
    running, name = guarded.desk.running, "late." + guarded.desk.base[:8]
    guarded.shelf.people["late"] = SourcePerson("late", "Late", f"{name}@example.org")
    guarded.put("late.txt")
    guarded.shelf.grants["late.txt"] = SourceGrant(["late"])
    await guarded.add()
    assert (await guarded.rights())["people_unmapped"] == 1
    late = await running.user(name)
    await running.run_jobs()
    assert await guarded.readable(late) == {"late.txt"}
    assert (await guarded.rights())["people_unmapped"] == 0


async def test_the_owner_says_who_is_whom(guarded: GuardedDesk) -> None:
    """A person or a group is an account, everybody here, or nobody."""
    ann, bob, cleo, path = guarded.desk.ann, guarded.bob, guarded.cleo, guarded.desk.path
    guarded.shelf.people["dora"] = SourcePerson("dora", "Dora")
    guarded.group("staff")
    guarded.put("dora.txt")
    guarded.shelf.grants["dora.txt"] = SourceGrant(["dora"])
    guarded.put("staff.txt", groups=("staff",))
    guarded.put("bob.txt", bob)
    await guarded.add()
    unmapped = (await ann.get(path("/principals?mapped=false"))).json()["items"]
    assert {(one["kind"], one["principal"]) for one in unmapped} == {("person", "dora"), ("group", "staff")}
    table = [
        {"kind": "person", "principal": "dora", "target": "account", "target_id": cleo.user["id"]},
        {"kind": "group", "principal": "staff", "target": "everyone"},
        {"kind": "person", "principal": bob.user["username"], "target": "nobody"},
    ]
    answer = await ann.put(path("/counterparts"), json={"items": table})
    assert answer.status == 200, answer.body
    assert await guarded.readable(cleo) == {"dora.txt", "staff.txt"}
    assert await guarded.readable(bob) == {"staff.txt"}
    shown = (await ann.get(path("/counterparts"))).json()["items"]
    assert {one["target"] for one in shown} == {"everyone", "account", "nobody"}
    assert (await ann.put(path("/counterparts"), json={"items": []})).status == 200
    assert (await guarded.readable(cleo), await guarded.readable(bob)) == (set(), {"bob.txt"})


@pytest.mark.parametrize(
    "wrong",
    [
        {"target": "account"},
        {"target": "account", "target_id": 10**8},
        {"target": "team", "target_id": 9},
    ],
)
async def test_a_counterpart_must_be_there(guarded: GuardedDesk, wrong: dict[str, Any]) -> None:
    guarded.group("staff")
    await guarded.add()
    body = {"items": [{"kind": "group", "principal": "staff", **wrong}]}
    assert (await guarded.desk.ann.put(guarded.desk.path("/counterparts"), json=body)).status == 422


async def test_why_somebody_may_read_it(guarded: GuardedDesk) -> None:
    """For whoever may change the knowledge base and read the document."""
    guarded.group("staff", guarded.bob)
    guarded.join(guarded.desk.ann)
    guarded.put("staff.txt", guarded.desk.ann, groups=("staff",))
    guarded.put("secret.txt", guarded.bob)
    ann = guarded.desk.ann
    await guarded.add()
    await guarded.desk.ann.put(
        guarded.desk.path("/counterparts"),
        json={
            "items": [
                {
                    "kind": "person",
                    "principal": ann.user["username"],
                    "target": "account",
                    "target_id": ann.user["id"],
                }
            ]
        },
    )
    base = f"/v1/rag/knowledge-bases/{guarded.desk.base}/documents"
    [one] = (await ann.get(base)).json()["items"]
    answer = await ann.get(f"{base}/{one['document_id']}/readers")
    assert answer.status == 200, answer.body
    found = {(who["kind"], who["name"]): who["account_ids"] for who in answer.json()["readers"]}
    assert found == {
        ("person", ann.user["username"]): [ann.user["id"]],
        ("group", "staff"): [guarded.bob.user["id"]],
    }
    secret = next(
        row["document_id"]
        for row in (await guarded.bob.get(base)).json()["items"]
        if row["filename"] == "secret.txt"
    )
    assert (await ann.get(f"{base}/{secret}/readers")).status == 404
    assert (await guarded.bob.get(f"{base}/{secret}/readers")).status == 403


async def test_the_names_of_what_one_may_not_read_stay_unsaid(guarded: GuardedDesk) -> None:
    """In the source's items, dry runs and samples, even for the owner."""
    guarded.put("secret.txt", guarded.bob)
    await guarded.add()
    ann, path = guarded.desk.ann, guarded.desk.path
    guarded.put("secret-too.txt", guarded.bob)
    assert (await guarded.desk.run(dry=True))["added"] == 1
    for answer in (
        await ann.get(path("/items")),
        await ann.get(path("/runs")),
        await ann.post(path("/test")),
    ):
        assert answer.status == 200
        assert b"secret" not in answer.body
    assert (await ann.delete(path("?documents=keep"))).status == 422
    assert (await ann.delete(path("?documents=delete"))).status == 202


@pytest.mark.long
async def test_doctor_asks_the_source_itself(guarded: GuardedDesk) -> None:
    """No differences after a refresh; what was taken since is one, until the next."""
    guarded.put("bob.txt", guarded.bob)
    guarded.put("all.txt", everybody=True)
    await guarded.add()

    async def finding() -> Finding:
        found = [one async for one in find_leaks(guarded.desk.running.platform)]
        return next(one for one in found if one.facts["source"] == guarded.desk.source)

    assert (await finding()).status == "ok"
    guarded.grant("bob.txt", guarded.cleo)
    wrong = await finding()
    assert (wrong.status, [who for who, _ in wrong.facts["leaks"]]) == ("failed", [guarded.bob.user["id"]])
    assert [who for who, _ in wrong.facts["withheld"]] == [guarded.cleo.user["id"]]
    await guarded.refresh()
    assert (await finding()).status == "ok"


async def test_rows_that_give_more_than_the_source_said_are_found(guarded: GuardedDesk) -> None:
    """Without asking the source: by what is stored of its permissions."""
    guarded.put("bob.txt", guarded.bob)
    guarded.group("staff", guarded.bob, guarded.cleo)
    guarded.put("staff.txt", groups=("staff",))
    guarded.put("all.txt", everybody=True)
    await guarded.add()
    running = guarded.desk.running

    async def leaks() -> list[tuple[int, str]]:
        [found] = [one async for one in find_stored_leaks(running.platform)]
        assert (found.status == "ok") == (found.facts["leaks"] == [])
        return [(account, document) for account, document in found.facts["leaks"] if document in mine]

    listed = await guarded.bob.get(f"/v1/rag/knowledge-bases/{guarded.desk.base}/documents")
    mine = {one["document_id"]: one["filename"] for one in listed.json()["items"]}
    assert await leaks() == []
    [bobs] = [one for one, name in mine.items() if name == "bob.txt"]

    def open_to_all(unit: Unit) -> None:
        unit.session.execute(update(Document).where(Document.id == bobs).values(audience_id=None))

    await running.platform.database.write(open_to_all)
    found = await leaks()
    assert guarded.cleo.user["id"] in {account for account, _ in found}
    assert {document for _, document in found} == {bobs}
    assert guarded.bob.user["id"] not in {account for account, _ in found}
    guarded.grant("bob.txt", guarded.bob, guarded.cleo)
    await guarded.refresh()
    assert guarded.cleo.user["id"] not in {account for account, _ in await leaks()}


async def test_the_job_of_a_document_goes_out_of_sight_with_it(desk: Desk, open_folder: Path) -> None:
    """It was the owner's as long as everybody read the document; it says what is in it."""
    place = open_folder / desk.base
    place.mkdir()
    (place / "a.txt").write_text("Salaries.")
    await desk.add(kind="folder", settings={"path": str(place)})
    [document] = (await desk.ann.get(f"/v1/rag/knowledge-bases/{desk.base}/documents")).json()["items"]
    admin = await somebody(desk.running, role="admin")
    path = f"/v1/jobs?subject={document['document_id']}"
    assert [(await one.get(path)).json()["total"] for one in (desk.ann, admin)] == [1, 1]
    change = {"settings": {"path": str(place), "rights": "posix"}}
    assert (await desk.ann.patch(desk.path(), json=change)).status == 200
    assert [(await one.get(path)).json()["total"] for one in (desk.ann, admin)] == [0, 0]


async def test_a_change_there_counts_for_what_is_in_the_trash(guarded: GuardedDesk) -> None:
    """A knowledge base that comes back has the readers that its source has now."""
    bob, cleo, desk = guarded.bob, guarded.cleo, guarded.desk
    guarded.put("bob.txt", bob)
    await guarded.add()
    await desk.discard()
    guarded.grant("bob.txt", cleo)
    await guarded.refresh()
    await desk.take_back()
    shared = {"visibility": "shared"}
    assert (await desk.ann.patch(f"/v1/rag/knowledge-bases/{desk.base}", json=shared)).status == 200
    assert (await guarded.readable(bob), await guarded.readable(cleo)) == (set(), {"bob.txt"})
