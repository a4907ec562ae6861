"""Bundles into teams and organizations: policies, dry runs, members, retries, the way there and back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select

from builtin_plugins.rag.models import KnowledgeBase, Pipeline
from builtin_plugins.tenancy import api as tenancy
from builtin_plugins.tenancy.models import Membership, TeamMember
from kernel.auth.identity import IDENTITY
from kernel.auth.models import AuditEntry
from kernel.sdk import Plugin, Unit, hookimpl, scope_of
from kernel.sdk.accounts import TOKENS
from kernel.testing import Running, Start
from tests.builtin_plugins.rag.rag_support import ask_raw, make_base, make_pipeline
from tests.builtin_plugins.tenancy.tenancy_support import (
    audited,
    claims,
    give_keys,
    id_of,
    join,
    make_org,
    make_team,
    problems,
    refused,
    somebody,
    suspend,
)
from tests.builtin_plugins.tenancy.transfer_support import (
    KINDS,
    Home,
    Kind,
    bundle,
    furnish,
    make_home,
    names,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

BASES, PIPELINES = "/v1/rag/knowledge-bases", "/v1/rag/pipeline"
TABLES = (KnowledgeBase, Pipeline, TeamMember, Membership, AuditEntry)


async def shared_rows(home: Home, path: str) -> dict[str, dict[str, Any]]:
    """What is shared with the home, by name, as its manager sees it."""
    items = (await home.manager.get(f"{path}?limit=500")).json()["items"]
    return {item["name"]: item for item in items if item[f"{home.kind}_id"] == home.id}


async def counts(running: Running) -> list[int]:
    """How many rows there are of all that an import writes."""
    return await running.platform.database.read(
        lambda session: [int(session.scalar(select(func.count()).select_from(one)) or 0) for one in TABLES]
    )


@pytest.mark.parametrize("kind", KINDS)
async def test_rows_are_stamped_and_owned(sharing: Running, kind: Kind) -> None:
    """What comes in is shared with the home and the importer's own, and works."""
    home = await make_home(sharing, kind)
    report = await home.take(bundle(kind))
    assert names(report, "created") == [("knowledge_base", "Atlas"), ("pipeline", "Guide")]
    assert report["skipped"] == report["renamed"] == report["failed"] == []
    base, pipeline = (await shared_rows(home, BASES))["Atlas"], (await shared_rows(home, PIPELINES))["Guide"]
    assert (base["visibility"], base["owner_id"]) == (kind, id_of(home.manager))
    assert (pipeline["visibility"], pipeline["owner_user_id"]) == (kind, id_of(home.manager))
    assert pipeline["knowledge_base_ids"] == [base["id"]]
    assert (await ask_raw(home.manager, pipeline["id"], "What?")).status == 200


@pytest.mark.parametrize("kind", KINDS)
async def test_members_join_as_member(sharing: Running, kind: Kind) -> None:
    """By e-mail, whatever role the bundle gives; existing roles stay; unknown members are reported."""
    home = await make_home(sharing, kind)
    new, known, gone = (
        await somebody(sharing),
        await somebody(sharing),
        await somebody(sharing, is_active=False),
    )
    await home.admit(known)
    top = "team_admin" if kind == "team" else "owner"
    role = "team_role" if kind == "team" else "org_role"
    emails = [new.user["email"].upper(), known.user["email"], gone.user["email"], "nobody@example.org"]
    emails.append(home.manager.user["email"])
    report = await home.take(bundle(kind, members=[{"email": email, role: top} for email in emails]))
    assert names(report, "created")[0] == ("member", emails[0])
    assert names(report, "skipped") == [("member", emails[1]), ("member", emails[4])]
    assert names(report, "failed") == [("member", emails[2]), ("member", emails[3])]
    reasons = {item["reason"] for item in report["failed"]}
    assert len(reasons) == 1, "a deactivated account is told as an unknown one"
    manager = home.manager.user["email"]
    assert await home.roles() == {manager: top, known.user["email"]: "member", new.user["email"]: "member"}
    assert (await claims(new))["teams" if kind == "team" else "orgs"]


async def test_what_is_said_about_dates_comes_along(sharing: Running) -> None:
    """And goes out again; a field that the bundle can't bring along is left out."""
    home = await make_home(sharing, "team")
    there = bundle("team")["knowledge_bases"][0]
    dated = {**there, "name": "Dated", "date_field": "created", "accept_dates": True}
    strange = {**there, "name": "Strange", "date_field": "decided"}
    await home.take(bundle("team", knowledge_bases=[dated, strange], pipelines=[]))
    rows = await shared_rows(home, BASES)
    found = {name: (row["date_field"], row["accept_dates"]) for name, row in rows.items()}
    assert found == {"Dated": ("created", True), "Strange": (None, False)}
    again = (await home.manager.get(f"{home.path}/export")).json()["knowledge_bases"]
    assert [(row["name"], row.get("date_field"), row.get("accept_dates")) for row in again] == [
        ("Dated", "created", True),
        ("Strange", None, None),
    ]


async def test_joining_counts_at_once(sharing: Running) -> None:
    """Who came in by an import sees at once what is shared there."""
    home = await make_home(sharing, "team")
    mate = await somebody(sharing)
    await furnish(home)
    handbook = f"{BASES}/{(await shared_rows(home, BASES))['Handbook']['id']}"
    assert (await mate.get(handbook)).status == 404
    await home.take(bundle("team", members=[{"email": mate.user["email"]}]))
    assert (await mate.get(handbook)).status == 200


async def test_a_suspended_member_stays_suspended(sharing: Running) -> None:
    """An import lifts no suspension, neither of a membership here nor of one in the bundle."""
    home = await make_home(sharing, "organization")
    here, there = await somebody(sharing), await somebody(sharing)
    await home.admit(here)
    await suspend(sharing, home.id, here)
    rows = [{"email": here.user["email"]}, {"email": there.user["email"], "suspended": True}]
    report = await home.take(bundle("organization", members=rows))
    assert names(report, "skipped") == [("member", row["email"]) for row in rows]
    claims = sharing.platform.resource(TOKENS).verify(here.token or "")
    principal = await sharing.platform.resource(IDENTITY).principal_of(claims)
    assert home.id not in (await scope_of(sharing.platform, principal)).organizations
    assert there.user["email"] not in await home.roles()


async def test_a_team_of_an_organization_takes_its_members_only(sharing: Running) -> None:
    """Others are reported, as adding them one by one would be refused."""
    boss, inside, out, away = [await somebody(sharing) for _ in range(4)]
    organization = await make_org(sharing, boss)
    await join(sharing, organization, inside)
    await join(sharing, organization, away)
    await suspend(sharing, organization, away)
    home = Home(sharing, "team", await make_team(sharing, boss, organization=organization), boss)
    rows = [{"email": one.user["email"]} for one in (inside, out, away)]
    report = await home.take(bundle("team", members=rows))
    assert ("member", inside.user["email"]) in names(report, "created")
    assert names(report, "failed") == [("member", out.user["email"]), ("member", away.user["email"])]


async def test_members_need_the_right_to_manage_them(sharing: Running) -> None:
    """Who may import by a role, and may not manage members, adds none by an import."""
    home = await make_home(sharing, "organization")
    clerk, new = await somebody(sharing), await somebody(sharing)
    await home.admit(clerk)
    await give_keys(sharing, home.id, clerk, "org.settings.manage")
    mine = Home(sharing, "organization", home.id, clerk)
    report = await mine.take(bundle("organization", members=[{"email": new.user["email"]}]))
    assert names(report, "failed") == [("member", new.user["email"])]
    assert "org.members.manage" in report["failed"][0]["reason"]
    assert new.user["email"] not in await home.roles()
    assert len(report["created"]) == 2


class TestPolicies:
    @pytest.mark.parametrize("kind", KINDS)
    async def test_skip_is_the_default_and_repeats_nothing(self, sharing: Running, kind: Kind) -> None:
        """What has the name stays as it is, and the same import again changes nothing."""
        home = await make_home(sharing, kind)
        mate = await somebody(sharing)
        sent = bundle(kind, members=[{"email": mate.user["email"]}])
        await home.take(sent)
        before = await home.export()
        for policy in (None, "skip"):
            report = await home.take(sent, policy)
            assert report["created"] == report["renamed"] == report["failed"] == []
            assert names(report, "skipped") == [
                ("member", mate.user["email"]),
                ("knowledge_base", "Atlas"),
                ("pipeline", "Guide"),
            ]
        after = await home.export()
        assert {**after, "exported_at": None} == {**before, "exported_at": None}

    async def test_skip_uses_what_is_there(self, sharing: Running) -> None:
        """A new pipeline over a skipped knowledge base asks the one that is there."""
        home = await make_home(sharing, "team")
        there = await make_base(home.manager, name="Atlas", **home.shared)
        await make_base(home.manager, name="Atlas")
        report = await home.take(bundle("team"))
        assert names(report, "skipped") == [("knowledge_base", "Atlas")]
        assert (await shared_rows(home, PIPELINES))["Guide"]["knowledge_base_ids"] == [there]

    async def test_rename(self, sharing: Running) -> None:
        """A name that is taken gets a number, and the pipeline asks the new knowledge base."""
        home = await make_home(sharing, "team")
        await home.take(bundle("team"))
        for number in (2, 3):
            report = await home.take(bundle("team"), "rename")
            expected = [("knowledge_base", f"Atlas ({number})"), ("pipeline", f"Guide ({number})")]
            assert names(report, "renamed") == expected
            assert "'Atlas'" in report["renamed"][0]["reason"]
        bases, pipelines = await shared_rows(home, BASES), await shared_rows(home, PIPELINES)
        assert pipelines["Guide (3)"]["knowledge_base_ids"] == [bases["Atlas (3)"]["id"]]

    async def test_rename_keeps_names_short_enough(self, sharing: Running) -> None:
        """A name of the greatest length loses its end to the number."""
        home = await make_home(sharing, "team")
        base = {**bundle("team")["knowledge_bases"][0], "name": "x" * 255}
        sent = bundle("team", knowledge_bases=[base], pipelines=[])
        await home.take(sent)
        report = await home.take(sent, "rename")
        assert names(report, "renamed") == [("knowledge_base", "x" * 251 + " (2)")]

    @pytest.mark.parametrize("kind", KINDS)
    async def test_fail(self, sharing: Running, kind: Kind) -> None:
        """422 names every collision, and nothing is written, not even the members."""
        home = await make_home(sharing, kind)
        mate = await somebody(sharing)
        await home.take(bundle(kind))
        more = [{**bundle(kind)["knowledge_bases"][0], "name": "New"}, *bundle(kind)["knowledge_bases"]]
        sent = bundle(kind, members=[{"email": mate.user["email"]}], knowledge_bases=more)
        before = await counts(sharing)
        found = problems(await home.send(sent, "fail"))
        assert set(found) == {"body.bundle.knowledge_bases.1.name", "body.bundle.pipelines.0.name"}
        assert await counts(sharing) == before
        assert mate.user["email"] not in await home.roles()

    async def test_fail_without_a_collision(self, sharing: Running) -> None:
        """Members who are there already are no collision: they have no name to lose."""
        home = await make_home(sharing, "team")
        report = await home.take(
            bundle("team", members=[{"email": home.manager.user["email"]}]), policy="fail"
        )
        assert len(report["created"]) == 2 and len(report["skipped"]) == 1


class TestDryRun:
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("policy", ["skip", "rename"])
    async def test_same_report_and_nothing_written(self, sharing: Running, kind: Kind, policy: str) -> None:
        home = await make_home(sharing, kind)
        mate = await somebody(sharing)
        await make_base(home.manager, name="Atlas", **home.shared)
        sent = bundle(kind, members=[{"email": mate.user["email"]}, {"email": "nobody@example.org"}])
        before = await counts(sharing)
        rehearsed = await home.take(sent, policy, dry_run=True)
        assert await counts(sharing) == before
        assert await home.take(sent, policy) == rehearsed
        assert await counts(sharing) != before

    async def test_collisions_are_422_too(self, sharing: Running) -> None:
        home = await make_home(sharing, "team")
        await home.take(bundle("team"))
        assert len(problems(await home.send(bundle("team"), "fail", dry_run=True))) == 2


@pytest.mark.parametrize("kind", KINDS)
async def test_audited_with_the_list(sharing: Running, kind: Kind) -> None:
    """Each import leaves one entry: policy, counts, and who joined."""
    home = await make_home(sharing, kind)
    mate = await somebody(sharing)
    sent = bundle(kind, members=[{"email": mate.user["email"]}, {"email": "nobody@example.org"}])
    await home.take(sent)
    await home.take(sent, dry_run=True)
    (entry,) = await audited(sharing, f"{kind}.imported", home.id)
    assert entry.after_state == {
        "policy": "skip",
        "created": 3,
        "skipped": 0,
        "renamed": 0,
        "failed": 1,
        "member_ids": [id_of(mate)],
    }
    assert entry.actor_id == id_of(home.manager)
    assert entry.scope_org_id == (home.id if kind == "organization" else None)


async def test_a_service_owns_nothing(sharing: Running) -> None:
    """A row without an owner would be open to everybody: services may not import."""
    home = await make_home(sharing, "team")
    service = Home(sharing, "team", home.id, sharing.anonymous)
    service.manager.token = sharing.platform.resource(TOKENS).mint_service("helper", 1)
    refused(await service.send(bundle("team")), 403)


async def test_an_embedding_model_that_is_not_here(sharing: Running) -> None:
    """Its knowledge bases and their pipelines are reported, the others come in."""
    home = await make_home(sharing, "team")
    there = bundle("team")["knowledge_bases"][0]
    strange = {**there, "name": "Strange", "embedding_model": "from-far-away"}
    rows = [{"name": "Over it", "knowledge_bases": ["Atlas", "Strange"]}, *bundle("team")["pipelines"]]
    report = await home.take(bundle("team", knowledge_bases=[strange, there], pipelines=rows))
    assert names(report, "failed") == [("knowledge_base", "Strange"), ("pipeline", "Over it")]
    assert "from-far-away" in report["failed"][0]["reason"]
    assert names(report, "created") == [("knowledge_base", "Atlas"), ("pipeline", "Guide")]


async def test_the_same_import_twice_at_once(sharing: Running) -> None:
    """Two of the same at the same time make each row once."""
    home = await make_home(sharing, "team")
    mate = await somebody(sharing)
    sent = bundle("team", members=[{"email": mate.user["email"]}])
    reports = await asyncio.gather(*(home.take(sent) for _ in range(4)))
    assert sorted(len(report["created"]) for report in reports) == [0, 0, 0, 3]
    found = await home.export()
    assert [len(found[key]) for key in ("members", "knowledge_bases", "pipelines")] == [2, 1, 1]


class Keeper(Plugin):
    """A plugin that takes its own section back, or breaks over it."""

    name = "keeper"

    @hookimpl(optionalhook=True)
    async def import_rows(self, sections: dict[str, Any]) -> tenancy.ImportPlan:
        rows = sections.get("plugin_config", [])

        def write(_unit: Unit) -> dict[str, Any]:
            if "break" in rows:
                raise RuntimeError("the keeper broke")
            return {"plugin_config": [tenancy.ImportedRow("created", "color", row) for row in rows]}

        return tenancy.ImportPlan(["plugin_config"] if rows else [], write)


@pytest.mark.asyncio(loop_scope="function")
async def test_other_plugins_take_their_sections(start_platform: Start) -> None:
    """A section goes to its plugin; without rag its sections are refused; a plugin that breaks undoes all."""
    running = await start_platform("tenancy", Keeper)
    home = await make_home(running, "organization")
    mate = await somebody(running)
    sent = bundle("organization", members=[{"email": mate.user["email"]}])
    assert "body.bundle.knowledge_bases" in problems(await home.send(sent))
    del sent["knowledge_bases"], sent["pipelines"]
    broken = await home.send({**sent, "plugin_config": ["green", "break"]})
    assert broken.status == 500 and mate.user["email"] not in await home.roles()
    report = await home.take({**sent, "plugin_config": ["green"]})
    assert names(report, "created") == [("member", mate.user["email"]), ("color", "green")]


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)
LINE = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=30)
NAME = LINE.map(lambda text: f"n{text}".strip())  # a name is one line with something to see
CONTENTS = st.fixed_dictionaries(
    {
        "bases": st.lists(
            st.tuples(NAME, TEXT, st.integers(1, 8192), st.sampled_from([None, "tiny"])), max_size=5
        ),
        "pipelines": st.lists(
            st.tuples(NAME, st.lists(st.integers(0, 4), max_size=5, unique=True), st.booleans()), max_size=4
        ),
    }
)


@settings(max_examples=12, deadline=None, derandomize=True)
@given(contents=CONTENTS, kind=st.sampled_from(KINDS))
async def test_there_and_back(sharing: Running, contents: dict[str, Any], kind: Kind) -> None:
    """Any bundle, imported into an empty place and exported again, is the same but for times and roles."""
    source, target = await make_home(sharing, kind), await make_home(sharing, kind)
    mates = [await somebody(sharing) for _ in range(2)]
    for mate in mates:
        await source.admit(mate)
    bases = [
        await make_base(
            source.manager,
            name=name,
            description=text,
            chunk_size=size,
            chunk_overlap=size // 10,
            llm_model=model,
            **source.shared,
        )
        for name, text, size, model in contents["bases"]
    ]
    for name, places, hybrid in contents["pipelines"]:
        chosen = [bases[place] for place in places if place < len(bases)]
        if chosen:
            config = {"retrieval_config": {"hybrid": hybrid, "top_k": 3}}
            await make_pipeline(source.manager, *chosen, name=name, **config, **source.shared)
    sent = await source.export()
    report = await target.take(sent)
    assert not report["skipped"] + report["renamed"] + report["failed"]
    back = await target.export()
    for section in ("knowledge_bases", "pipelines"):
        assert back[section] == sent[section]
    assert {row["email"] for row in sent["members"]} <= {row["email"] for row in back["members"]}
    assert set(back) == set(sent)
