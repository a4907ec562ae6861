"""The groups that the provider names at sign-ins, as counterparts of groups at guarded sources."""

from __future__ import annotations

import random
import secrets
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from sqlalchemy import delete, func, select, update

from builtin_plugins.accounts.api import ACCOUNTS
from builtin_plugins.oidc.diagnostics import check_groups
from builtin_plugins.oidc.models import GroupMember, GroupStatement
from builtin_plugins.sources.api import SourceGrant, SourceGroup
from builtin_plugins.sources.services.rights.leaks import find_stored_leaks
from builtin_plugins.sources.services.rights.refreshing import REFRESH_RIGHTS, SourceRightsPayload
from kernel.sdk import PLUGIN_STATES, Unit, utc_now
from kernel.testing import Actor, somebody
from tests.builtin_plugins.oidc.identity_provider import ProviderProcess, in_front_of
from tests.builtin_plugins.oidc.sso_support import Site, settings_for
from tests.builtin_plugins.rag.rag_support import make_base
from tests.builtin_plugins.sources.conftest import Desk
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.kept import Kept
from tests.fakes.scripted_source import ScriptedSources, Shelf

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture(scope="module")
def scripted() -> ScriptedSources:
    return ScriptedSources()


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=["sqlite", "postgresql"])
async def grouped_site(
    request: pytest.FixtureRequest, kept: Kept, process: ProviderProcess, scripted: ScriptedSources
) -> AsyncIterator[Site]:
    """A platform with sources that remembers nothing of the provider."""
    async with (
        in_front_of(process) as idp,
        aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session,
    ):
        env = {**settings_for(idp), "PLATFORM_OIDC_CACHE_SECONDS": "0"}
        plugins = ("oidc", "sources", HashEmbeddings(), scripted)
        name = f"sign-in groups {secrets.token_hex(4)}"
        yield Site(await kept.platform(name, request.param, *plugins, env=env), idp, session)


class Office:
    """Ann's shared knowledge base with a guarded source, at which the group `hr` may read `hr.txt`."""

    def __init__(self, site: Site, desk: Desk) -> None:
        self.site, self.desk, self.running = site, desk, site.running
        self.hr, self.id = f"hr {secrets.token_hex(4)}", secrets.token_hex(4)
        self.bea = f"bea-{secrets.token_hex(4)}"

    async def open(self, **fields: Any) -> None:
        shelf = self.desk.shelf
        shelf.groups[self.id] = SourceGroup(self.id, self.hr)
        shelf.contents["hr.txt"] = b"What hr says."
        shelf.grants["hr.txt"] = SourceGrant(groups=[self.id])
        assert (await self.desk.add(kind="secretive", **fields))["added"] == 1
        shelf.fetched.clear()

        def read(what: str) -> None:
            raise AssertionError(f"{what} was read again")

        shelf.reading_rights = read

    async def sign_in(self, *groups: str, **claims: Any) -> Actor:
        """Bea signs in; what follows from it has happened."""
        await self.site.idp.knows(self.bea, **({"groups": list(groups)} | claims))
        actor = await self.site.sign_in(self.bea)
        await self.running.run_jobs()
        return actor

    async def say(self, **target: Any) -> int:
        """What the group is here, by the owner's word; returns the status."""
        item = {"kind": "group", "principal": self.id, **target}
        answer = await self.desk.ann.put(self.desk.path("/counterparts"), json={"items": [item]})
        return answer.status

    async def readable(self, actor: Actor) -> list[str]:
        answer = await actor.get(f"/v1/rag/knowledge-bases/{self.desk.base}/documents")
        assert answer.status == 200, answer.body
        return [one["filename"] for one in answer.json()["items"]]

    async def documents(self, actors: Mapping[str, Actor]) -> list[dict[str, Any]]:
        """All that any of them reads."""
        path = f"/v1/rag/knowledge-bases/{self.desk.base}/documents"
        return [row for one in actors.values() for row in (await one.get(path)).json()["items"]]

    async def unmapped(self) -> int:
        return int((await self.desk.ann.get(self.desk.path("/rights"))).json()["groups_unmapped"])

    async def account_id(self) -> int:
        rows, _ = await self.running.platform.resource(ACCOUNTS).list()
        return next(row.id for row in rows if row.username == self.bea)

    async def write(self, statement: Any) -> None:
        def work(unit: Unit) -> None:
            unit.session.execute(statement)

        await self.running.platform.database.write(work)

    async def refresh(self) -> None:
        """Read the permissions, as happens between runs."""
        self.desk.shelf.reading_rights = lambda _: None
        payload = SourceRightsPayload(source_id=self.desk.source)
        await self.running.platform.database.write(lambda unit: unit.enqueue(REFRESH_RIGHTS, payload))
        await self.running.run_jobs()


@pytest_asyncio.fixture(loop_scope="session")
async def office(grouped_site: Site, scripted: ScriptedSources) -> AsyncIterator[Office]:
    grouped_site.idp.behave()
    running, name = grouped_site.running, secrets.token_hex(8)
    scripted.shelves[name] = Shelf()
    ann = await somebody(running)
    base = await make_base(ann, visibility="shared")
    yield Office(grouped_site, Desk(running, ann, base, scripted.shelves[name], name))
    await running.run_jobs()


async def test_a_group_of_the_sign_in_reads_what_its_counterpart_reads(office: Office) -> None:
    """Until a sign-in does not name it any more; nothing is read or fetched at the source for that."""
    await office.open()
    bea = await office.sign_in(office.hr, "staff")
    assert (await office.readable(bea), await office.unmapped()) == ([], 1), "the same name proves nothing"
    assert await office.say(target="sign_in_group", target_name=office.hr) == 200
    assert (await office.readable(bea), await office.unmapped()) == (["hr.txt"], 0)
    assert await office.readable(office.desk.ann) == []
    again = await office.sign_in("staff", office.hr.upper())
    assert (await office.readable(bea), await office.readable(again)) == ([], [])
    assert await office.unmapped() == 1
    await office.sign_in(groups=office.hr)  # a text in place of a list
    assert await office.readable(bea) == ["hr.txt"]
    assert office.desk.shelf.fetched == []


async def test_the_first_sign_in_counts(office: Office) -> None:
    await office.open()
    await office.say(target="sign_in_group", target_name=office.hr)
    assert await office.readable(await office.sign_in(office.hr)) == ["hr.txt"]


@pytest.mark.parametrize(
    ("alike", "groups", "expected"),
    [
        ("name", ["{hr}"], ["hr.txt"]),
        ("name", ["{id}"], []),
        ("id", ["{id}"], ["hr.txt"]),
        ("id", ["{hr}"], []),
        (None, ["{hr}", "{id}"], []),
    ],
)
async def test_the_same_id_or_name_counts_only_if_the_owner_says_so(
    office: Office, alike: str | None, groups: list[str], expected: list[str]
) -> None:
    await office.open(sign_in_groups=alike)
    bea = await office.sign_in(*(one.format(hr=office.hr, id=office.id) for one in groups))
    assert await office.readable(bea) == expected
    assert await office.unmapped() == (0 if expected else 1)


async def test_the_owners_choice_counts_at_once(office: Office) -> None:
    """And what is said of one group comes before it."""
    await office.open()
    bea, ann, path = await office.sign_in(office.hr), office.desk.ann, office.desk.path()
    chosen = await ann.patch(path, json={"sign_in_groups": "name"})
    assert (chosen.status, chosen.json()["sign_in_groups"]) == (200, "name")
    assert await office.readable(bea) == ["hr.txt"]
    await office.say(target="nobody")
    assert await office.readable(bea) == []
    assert (await ann.put(f"{path}/counterparts", json={"items": []})).status == 200
    assert await office.readable(bea) == ["hr.txt"]
    assert (await ann.patch(path, json={"name": "Shelf 2"})).json()["sign_in_groups"] == "name"
    assert (await ann.patch(path, json={"sign_in_groups": None})).status == 200
    assert await office.readable(bea) == []


async def test_a_name_of_two_groups_is_nobodys(office: Office) -> None:
    """Whoever may make groups at the source takes no other group's place."""
    office.desk.shelf.groups["8"] = SourceGroup("8", office.hr)
    await office.open(sign_in_groups="name")
    assert await office.readable(await office.sign_in(office.hr)) == []


async def test_a_group_within_a_group_counts(office: Office) -> None:
    shelf = office.desk.shelf
    shelf.groups |= {
        office.id: SourceGroup(office.id, office.hr),
        "all": SourceGroup("all", "All", groups=[office.id]),
    }
    shelf.contents["all.txt"] = b"What all say."
    shelf.grants["all.txt"] = SourceGrant(groups=["all"])
    assert (await office.desk.add(kind="secretive"))["added"] == 1
    await office.say(target="sign_in_group", target_name=office.hr)
    assert await office.readable(await office.sign_in(office.hr)) == ["all.txt"]


@pytest.mark.parametrize("why", ["names_elsewhere", "hasgroups", "unreachable", "too_many"])
async def test_unknown_groups_are_none(office: Office, why: str) -> None:
    """And the operator can see it."""
    await office.open()
    await office.say(target="sign_in_group", target_name=office.hr)
    bea = await office.sign_in(office.hr)
    assert await office.readable(bea) == ["hr.txt"]
    idp, elsewhere = office.site.idp, {"_claim_names": {"groups": "src1"}}
    claims: dict[str, Any] = {"groups": None}
    if why == "unreachable":
        idp.statuses["/me"] = 500
    elif why == "too_many":
        claims = {"groups": [office.hr, *(f"g{number}" for number in range(2_000))]}
    else:
        said = elsewhere if why == "names_elsewhere" else {"hasgroups": True}
        idp.changes["/me"] = lambda sent: {**sent, **said}
    await office.sign_in(**claims)
    assert await office.readable(bea) == []
    problem = "not_sent" if why in ("names_elsewhere", "hasgroups") else why
    [found] = [one async for one in check_groups(office.running.platform)]
    assert (found.status, found.facts[problem] >= 1) == ("warning", True)
    audited = await office.site.audited("account.groups_changed")
    assert problem in str(audited[-1])
    idp.behave()
    await office.sign_in(office.hr)
    assert await office.readable(bea) == ["hr.txt"]


async def test_names_that_cannot_be_stored_take_nothing_from_the_others(office: Office) -> None:
    await office.open()
    await office.say(target="sign_in_group", target_name=office.hr)
    names = ["", "a\0b", "x" * 256, "line\nbreak", "\ud800", office.hr]
    assert await office.readable(await office.sign_in(*names)) == ["hr.txt"]


async def test_groups_of_long_ago_count_no_longer(office: Office) -> None:
    """A token that works without signing in again is no longer that of a member."""
    await office.open()
    await office.say(target="sign_in_group", target_name=office.hr)
    bea = await office.sign_in(office.hr)
    mine = GroupStatement.account_id == await office.account_id()
    long_ago = utc_now() - timedelta(hours=25)
    await office.write(update(GroupStatement).where(mine).values(made_at=long_ago))
    await office.refresh()
    assert await office.readable(bea) == []
    await office.sign_in(office.hr)
    assert await office.readable(bea) == ["hr.txt"]


async def test_the_groups_go_with_the_account(office: Office) -> None:
    await office.open()
    await office.say(target="sign_in_group", target_name=office.hr)
    bea, account_id = await office.sign_in(office.hr), await office.account_id()
    assert (await bea.delete("/v1/auth/me", json={})).status in (200, 202)
    await office.running.run_jobs()
    for table in (GroupMember, GroupStatement):
        counted = select(func.count()).where(table.account_id == account_id)
        count = await office.running.platform.database.read(
            lambda session, query=counted: session.scalar(query)
        )
        assert count == 0
    assert await office.unmapped() == 1
    fresh = await office.sign_in()
    assert await office.readable(fresh) == [], "a new account has nothing of the old one's"


async def test_the_owner_does_not_learn_who_is_in_a_group(office: Office) -> None:
    """Whichever group of the sign-in they name; administrators do."""
    ann, path = office.desk.ann, office.desk.path
    await office.open()
    await office.say(target="sign_in_group", target_name=office.hr)
    admin = await somebody(office.running, role="admin")
    bea = await office.sign_in(office.hr)
    await office.sign_in(office.hr)
    shown = [(await one.get(f"{path('/principals')}?kind=group")).json()["items"][0] for one in (ann, admin)]
    assert [one["accounts"] for one in shown] == [None, 1]
    assert [one["targets"] for one in shown] == [["sign_in_group"], ["sign_in_group"]]
    # Ann reads it herself as of now, so that she may ask who else does.
    items = [
        {"kind": "group", "principal": office.id, "target": "sign_in_group", "target_name": office.hr},
        {"kind": "group", "principal": office.id, "target": "account", "target_id": ann.user["id"]},
    ]
    assert (await ann.put(path("/counterparts"), json={"items": items})).status == 200
    base = f"/v1/rag/knowledge-bases/{office.desk.base}/documents"
    [document] = (await ann.get(base)).json()["items"]
    readers = (await ann.get(f"{base}/{document['document_id']}/readers")).json()["readers"]
    assert [one["account_ids"] for one in readers] == [None]
    assert await office.readable(bea) == ["hr.txt"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"target": "sign_in_group"},
        {"target": "sign_in_group", "target_name": ""},
        {"target": "sign_in_group", "target_name": "x" * 256},
        {"target": "sign_in_group", "target_name": "hr", "target_id": 7},
        {"target": "everyone", "target_name": "hr"},
    ],
)
async def test_a_counterpart_has_the_name_of_a_group(office: Office, wrong: dict[str, Any]) -> None:
    await office.open()
    assert await office.say(**wrong) == 422


async def test_rows_that_give_more_than_the_sign_in_said_are_found(office: Office) -> None:
    """By `doctor --leaks`, which asks for the groups themselves."""
    await office.open()
    await office.say(target="sign_in_group", target_name=office.hr)
    await office.sign_in(office.hr)
    account_id = await office.account_id()

    async def leaking() -> set[int]:
        [found] = [one async for one in find_stored_leaks(office.running.platform)]
        return {account for account, _ in found.facts["leaks"]}

    assert account_id not in await leaking()
    await office.write(delete(GroupMember).where(GroupMember.account_id == account_id))
    assert account_id in await leaking()
    await office.refresh()
    assert account_id not in await leaking()


async def test_without_the_provider_there_are_no_groups(office: Office) -> None:
    """A switched-off plugin says nothing, and what it said before counts no longer."""
    await office.open()
    await office.say(target="sign_in_group", target_name=office.hr)
    bea = await office.sign_in(office.hr)
    assert await office.readable(bea) == ["hr.txt"]
    states = office.running.platform.resource(PLUGIN_STATES)
    states.switch_off(["oidc"])
    try:
        await office.refresh()
        assert await office.readable(bea) == []
    finally:
        states.switch_off([])


async def test_random_sign_ins_and_choices_against_a_plain_model(office: Office) -> None:
    """After each step, everybody reads what the model says, and `doctor --leaks` finds nothing."""
    dice, shelf, ann = random.Random(53), office.desk.shelf, office.desk.ann
    tag = secrets.token_hex(4)
    ids = [f"{tag}-{number}" for number in range(4)]
    shelf.groups = {
        one: SourceGroup(one, f"{one} name", groups=dice.sample(ids, dice.randrange(2))) for one in ids
    }
    for one in ids:
        shelf.contents[f"{one}.txt"] = f"What {one} says.".encode()
        shelf.grants[f"{one}.txt"] = SourceGrant(groups=[one])
    assert (await office.desk.add(kind="secretive"))["added"] == 4
    names = [*ids, *(f"{one} name" for one in ids), f"{tag} free"]
    people = {f"{tag}-{name}": set[str]() for name in ("bea", "cem", "dot")}
    actors: dict[str, Actor] = {}
    alike: str | None = None
    said: dict[str, str | None] = {}

    def own(group: str) -> set[str]:
        if group in said:
            return {said[group]} - {None}  # type: ignore[return-value]
        return {None: set(), "id": {group}, "name": {f"{group} name"}}[alike]

    def of(group: str) -> set[str]:
        seen, left, found = set[str](), [group], set[str]()
        while left:
            if (one := left.pop()) not in seen:
                seen.add(one)
                found |= own(one)
                left += () if one in said else shelf.groups[one].groups
        return found

    for person in people:
        office.bea = person
        actors[person] = await office.sign_in()
    for _ in range(24):
        match dice.randrange(3):
            case 0:
                office.bea = dice.choice(sorted(people))
                people[office.bea] = set(dice.sample(names, 3))
                actors[office.bea] = await office.sign_in(*people[office.bea])
            case 1:
                alike = dice.choice([None, "id", "name"])
                changed = await ann.patch(office.desk.path(), json={"sign_in_groups": alike})
                assert changed.status == 200, changed.body
            case _:
                said = {one: dice.choice([*names, None]) for one in dice.sample(ids, dice.randrange(3))}
                items = [
                    {"kind": "group", "principal": one, "target": "nobody"}
                    | ({"target": "sign_in_group", "target_name": name} if name else {})
                    for one, name in said.items()
                ]
                reply = await ann.put(office.desk.path("/counterparts"), json={"items": items})
                assert reply.status == 200, reply.body
        for person, groups in people.items():
            expected = {f"{one}.txt" for one in ids if of(one) & groups}
            assert set(await office.readable(actors[person])) == expected, (person, groups, alike, said)
    [finding] = [one async for one in find_stored_leaks(office.running.platform)]
    assert finding.facts["questions"] > 0
    listed = {document for _, document in finding.facts["leaks"] + finding.facts["withheld"]}
    assert not listed & {row["document_id"] for row in await office.documents(actors)}
