"""Random organizations, memberships, visibilities and questions, against a plain model of who sees what.

`pytest tests/builtin_plugins/tenancy/access/test_leak_fuzz.py --leak-steps 10000` is the long run, and
`--leak-seed` repeats one.
"""

from __future__ import annotations

import random
import re
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from cli.checks import of_plugins
from kernel.sdk import Account
from kernel.sdk.accounts import TOKENS
from kernel.testing import Actor, Reply, Running, Start
from tests.builtin_plugins.rag.rag_support import upload
from tests.builtin_plugins.tenancy.tenancy_support import claims, id_of, read_claims, somebody
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.keeping import Keeper

BASES, PIPELINES, GRAPHS = "/v1/rag/knowledge-bases", "/v1/rag/pipeline", "/v1/graph-rag"
WORD = re.compile(r"zq[0-9a-f]{10}")
VISIBILITIES = ("private", "team", "organization", "shared")
GROUPS = ("g0", "g1", "g2", "g3")
MOST_CITED = 90  # documents beyond which an answer may leave some out


@dataclass
class Thing:
    """A knowledge base or a pipeline as the model knows it.

    `documents` are those of a knowledge base, by id the name and the word inside, both unique. With `graph`
    they have graphs, where the word is an entity beside one that all of them name. `readers` are the groups
    of those documents that have some, and `groups` who is in them.
    """

    id: str
    owner: str
    name: str
    visibility: str
    place: int | None
    documents: dict[str, tuple[str, str]] = field(default_factory=dict)
    sources: list[str] = field(default_factory=list)
    graph: bool = False
    readers: dict[str, set[str]] = field(default_factory=dict)
    groups: dict[str, set[str]] = field(default_factory=dict)

    def documents_of(self, who: str) -> dict[str, tuple[str, str]]:
        """Those that somebody may read who sees the knowledge base."""
        mine = {group for group, people in self.groups.items() if who in people}
        return {
            one: words
            for one, words in self.documents.items()
            if one not in self.readers or mine & self.readers[one]
        }

    def words_of(self, who: str) -> set[str]:
        """All that somebody may read who sees it."""
        return {self.name, *(word for pair in self.documents_of(who).values() for word in pair)}

    @property
    def words(self) -> set[str]:
        """All that is in it."""
        return {self.name, *(word for pair in self.documents.values() for word in pair)}


@dataclass
class Model:
    """Who belongs where, and who may see what: the rules of decisions.md, in the plainest way."""

    teams: dict[int, dict[str, str]] = field(default_factory=dict)
    team_homes: dict[int, int | None] = field(default_factory=dict)
    organizations: dict[int, dict[str, str]] = field(default_factory=dict)
    parents: dict[int, int | None] = field(default_factory=dict)
    suspended: set[tuple[int, str]] = field(default_factory=set)
    bases: dict[str, Thing] = field(default_factory=dict)
    pipelines: dict[str, Thing] = field(default_factory=dict)
    constructed: dict[str, dict[str, str]] = field(default_factory=dict)

    def graphs_of(self, who: str) -> dict[str, str]:
        """The documents with a graph that somebody sees, with the word in each."""
        words = dict(self.constructed.get(who, {}))
        for base in self.bases.values():
            if base.graph and self.sees(who, base):
                words |= {document: word for document, (_, word) in base.documents_of(who).items()}
        return words

    def names_of(self, documents: Iterable[str]) -> set[str]:
        chosen_ids = set(documents)
        every = (pair for base in self.bases.values() for pair in base.documents.items())
        return {name for document, (name, _) in every if document in chosen_ids}

    def in_organization(self, who: str, organization: int) -> bool:
        return who in self.organizations[organization] and (organization, who) not in self.suspended

    def in_team(self, who: str, team: int) -> bool:
        home = self.team_homes[team]
        return who in self.teams[team] and (home, who) not in self.suspended

    def sees(self, who: str, thing: Thing) -> bool:
        """Whether a row is visible to somebody right now."""
        if thing.owner == who or thing.visibility == "shared":
            return True
        if thing.visibility == "team" and thing.place in self.teams:
            return self.in_team(who, thing.place)
        return (
            thing.visibility == "organization"
            and thing.place is not None
            and self.in_organization(who, thing.place)
        )

    def places(self, who: str, kind: str) -> list[int]:
        """The teams or organizations with which somebody may share."""
        if kind == "team":
            return [team for team in self.teams if self.in_team(who, team)]
        return [one for one in self.organizations if self.in_organization(who, one)]

    def manages(self, who: str, kind: str, place: int) -> bool:
        """A team's admin, or an owner or admin of the organization, or of one above it."""
        if kind == "team" and self.in_team(who, place) and self.teams[place][who] == "team_admin":
            return True
        home = self.team_homes[place] if kind == "team" else place
        while home is not None:
            if self.in_organization(who, home) and self.organizations[home][who] != "member":
                return True
            home = self.parents[home]
        return False

    def claimed(self, who: str) -> tuple[set[int], set[tuple[int, str]]]:
        """Teams, and organizations with roles, that a fresh token names."""
        mine = self.places(who, "organization")
        return set(self.places(who, "team")), {(one, self.organizations[one][who]) for one in mine}


class Fuzzer:
    """Does random things through HTTP, keeps the model beside it, and compares."""

    def __init__(self, running: Running, dice: random.Random) -> None:
        self.running = running
        self.dice = dice
        self.model = Model()
        self.people: dict[str, Actor] = {}
        self.admin: Actor
        self.log: list[str] = []
        self.keepers: dict[str, Keeper] = {}

    async def begin(self) -> None:
        """Some people, a tree of organizations and a few teams."""
        self.admin = await somebody(self.running, role="admin")
        for number in range(8):
            self.people[f"p{number}"] = await somebody(self.running)
        for _ in range(3):
            await self.found_organization()
        for _ in range(2):
            await self.found_team()
        for _ in range(16):
            await self.join_team()
            await self.join_organization()
        for _ in range(6):
            await self.make_base()
        for _ in range(3):
            await self.make_pipeline()

    async def step(self) -> None:
        """One random act or look; looks are twice as likely."""
        acts: list[Callable[[], Awaitable[None]]] = [
            *[self.join_team, self.leave_team, self.join_organization, self.leave_organization] * 3,
            *[self.suspend, self.restore, self.reshare_base, self.reshare_pipeline] * 3,
            self.found_team,
            self.end_team,
            self.make_base,
            self.make_pipeline,
            *[self.write, self.erase] * 2,
            *[self.keep, self.regrant, self.regroup] * 3,
            self.end_base,
            *[self.construct, self.drop_constructed, self.switch_graph] * 2,
        ]
        looks: list[Callable[[], Awaitable[None]]] = [
            *[self.ask] * 4,
            self.list_bases,
            self.list_pipelines,
            self.read_base,
            self.read_pipeline,
            self.read_documents,
            *[self.look_at_graphs] * 3,
            self.export,
            self.refresh,
        ]
        await self.dice.choice(looks if self.dice.random() < 0.67 else acts)()

    # what happens

    async def found_organization(self) -> None:
        owner = self.somebody()
        above = self.dice.choice([None, *self.model.organizations])
        slug = f"o{secrets.token_hex(5)}"
        body = {"name": slug, "slug": slug, "owner_user_id": self.id(owner), "parent_id": above}
        organization = await self.ok(
            self.admin.post("/v1/organizations", json=body), f"{owner} founds below {above}"
        )
        self.model.organizations[organization["id"]], self.model.parents[organization["id"]] = (
            {owner: "owner"},
            above,
        )
        self.model.teams[organization["default_team_id"]] = {owner: "team_admin"}
        self.model.team_homes[organization["default_team_id"]] = organization["id"]

    async def found_team(self) -> None:
        who = self.somebody()
        home = self.dice.choice([None, *self.model.places(who, "organization")])
        body = {"name": f"t{secrets.token_hex(5)}", "organization_id": home}
        team = await self.ok(self.people[who].post("/v1/teams", json=body), f"{who} founds a team in {home}")
        self.model.teams[team["id"]] = {who: "team_admin"}
        self.model.team_homes[team["id"]] = home

    async def end_team(self) -> None:
        if len(self.model.teams) > 5:
            team = self.dice.choice(list(self.model.teams))
            members = list(self.model.teams[team])
            for who in members:
                await self.look_as(who)
            await self.ok(self.admin.delete(f"/v1/teams/{team}"), f"team {team} ends")
            del self.model.teams[team], self.model.team_homes[team]
            for who in members:
                await self.look_as(who)

    async def join_team(self) -> None:
        team, who = self.dice.choice(list(self.model.teams)), self.somebody()
        await self.look_as(who)
        body = {"user_id": self.id(who), "team_role": "member"}
        answer = await self.admin.post(f"/v1/teams/{team}/members", json=body)
        self.log.append(f"{who} joins team {team}: {answer.status}")
        home = self.model.team_homes[team]
        if who in self.model.teams[team]:
            assert answer.status == 409, answer.body
        elif home is not None and not self.model.in_organization(who, home):
            assert answer.status in (403, 409), answer.body
        else:
            assert answer.status == 201, answer.body
            self.model.teams[team][who] = "member"
        await self.look_as(who)

    async def leave_team(self) -> None:
        team = self.dice.choice(list(self.model.teams))
        for who in self.pick(self.model.teams[team]):
            await self.look_as(who)
            path = f"/v1/teams/{team}/members/{self.id(who)}"
            await self.ok(self.admin.delete(path), f"{who} leaves team {team}")
            del self.model.teams[team][who]
            await self.look_as(who)

    async def join_organization(self) -> None:
        organization, who = self.dice.choice(list(self.model.organizations)), self.somebody()
        if who not in self.model.organizations[organization]:
            await self.look_as(who)
            role = self.dice.choice(["member", "member", "admin"])
            body = {"user_id": self.id(who), "org_role": role}
            path = f"/v1/organizations/{organization}/members"
            await self.ok(self.admin.post(path, json=body), f"{who} joins organization {organization}")
            self.model.organizations[organization][who] = role
            await self.look_as(who)

    async def leave_organization(self) -> None:
        organization, who = self.a_member()
        if who is not None:
            path = f"/v1/organizations/{organization}/members/{self.id(who)}"
            await self.ok(self.admin.delete(path), f"{who} leaves organization {organization}")
            del self.model.organizations[organization][who]
            self.model.suspended.discard((organization, who))
            for team, members in self.model.teams.items():
                if self.model.team_homes[team] == organization:
                    members.pop(who, None)
            await self.sign_in(who)
            await self.look_as(who)

    async def suspend(self) -> None:
        organization, who = self.a_member()
        if who is not None and (organization, who) not in self.model.suspended:
            path = f"/v1/organizations/{organization}/members/{self.id(who)}/suspension"
            await self.ok(self.admin.put(path), f"{who} is suspended in {organization}")
            self.model.suspended.add((organization, who))
            await self.sign_in(who)
            await self.look_as(who)

    async def restore(self) -> None:
        for organization, who in self.pick(sorted(self.model.suspended)):
            await self.look_as(who)
            path = f"/v1/organizations/{organization}/members/{self.id(who)}/suspension"
            await self.ok(self.admin.delete(path), f"{who} is restored in {organization}")
            self.model.suspended.discard((organization, who))
            await self.look_as(who)

    async def make_base(self) -> None:
        who = self.somebody()
        sharing = self.sharing(who)
        graph = self.dice.random() < 0.7
        body = {"name": self.word(), "graph": graph, **sharing}
        record = await self.ok(self.people[who].post(BASES, json=body), f"{who} makes a base {sharing}")
        base = Thing(record["id"], who, record["name"], record["visibility"], placed(record), graph=graph)
        self.model.bases[base.id] = base
        await self.write(base)

    async def write(self, base: Thing | None = None) -> None:
        base = base or self.dice.choice(list(self.model.bases.values()))
        word, name = self.word(), self.word()
        text = mascot(word)
        answer = await upload(self.people[base.owner], base.id, f"{name}.md", text)
        assert answer.status == 202, answer.body
        await self.running.run_jobs()
        self.log.append(f"{base.owner} writes {word} in {base.id}")
        base.documents[answer.json()["document_id"]] = (name, word)

    async def erase(self) -> None:
        for base in self.pick(self.model.bases.values()):
            for document in self.pick(base.documents):
                path = f"{BASES}/{base.id}/documents/{document}"
                if document not in base.documents_of(base.owner):
                    self.hidden(await self.people[base.owner].delete(path), base)
                    continue
                await self.ok(self.people[base.owner].delete(path), f"{document} of {base.id} is erased")
                del base.documents[document]

    async def keep(self) -> None:
        """A plugin stores a document with readers."""
        base = self.dice.choice(list(self.model.bases.values()))
        keeper = self.keepers.setdefault(base.id, Keeper(self.running.platform, base.id))
        word, name, groups = self.word(), self.word(), self.some_groups()
        document = await keeper.put(f"{name}.md", mascot(word), keeper.readers(*groups))
        await self.running.run_jobs()
        self.log.append(f"a plugin writes {word} in {base.id} for {groups}")
        base.documents[document], base.readers[document] = (name, word), groups

    async def regrant(self) -> None:
        """The readers of a plugin's document change; sometimes it has none of its own any more."""
        base = self.dice.choice(list(self.model.bases.values()))
        for document in self.pick(sorted(base.readers.keys() & base.documents.keys())):
            keeper, groups = self.keepers[base.id], self.some_groups()
            is_open = self.dice.random() < 0.1
            before = self.dice.choice(list(self.people))
            await self.look_as(before)
            await keeper.grant(
                {f"{base.documents[document][0]}.md": None if is_open else keeper.readers(*groups)}
            )
            self.log.append(f"{document} of {base.id} is for {'all' if is_open else groups}")
            base.readers[document] = groups
            if is_open:
                del base.readers[document]
            await self.look_as(before)

    async def regroup(self) -> None:
        """Other people are in a group."""
        for base_id in self.pick(sorted(self.keepers.keys() & self.model.bases.keys())):
            group, people = self.dice.choice(GROUPS), set(self.dice.sample(sorted(self.people), 3))
            before = self.dice.choice(list(self.people))
            await self.look_as(before)
            await self.keepers[base_id].members(**{group: [self.id(one) for one in people]})
            self.log.append(f"in {group} of {base_id} are {people}")
            self.model.bases[base_id].groups[group] = people
            await self.look_as(before)

    def some_groups(self) -> set[str]:
        return set(self.dice.sample(GROUPS, self.dice.randint(0, 2)))

    async def end_base(self) -> None:
        if len(self.model.bases) > 8:
            base = self.dice.choice(list(self.model.bases.values()))
            mine = [pipeline for pipeline in self.model.pipelines.values() if base.id in pipeline.sources]
            own = [pipeline.id for pipeline in mine if pipeline.owner == base.owner]
            body = {"confirm_delete_pipeline_ids": own}
            path = f"{BASES}/{base.id}"
            await self.ok(self.people[base.owner].delete(path, json=body), f"base {base.id} ends")
            del self.model.bases[base.id]
            for pipeline in mine:
                pipeline.sources.remove(base.id)
            for gone in own:
                del self.model.pipelines[gone]

    async def make_pipeline(self) -> None:
        who = self.somebody()
        visible = [base.id for base in self.model.bases.values() if self.model.sees(who, base)]
        if visible:
            sources = self.dice.sample(visible, min(len(visible), self.dice.randint(1, 4)))
            body = {"name": self.word(), "knowledge_base_ids": sources, **self.sharing(who)}
            record = await self.ok(self.people[who].post(PIPELINES, json=body), f"{who} pipes {sources}")
            thing = Thing(record["pipeline_id"], who, record["name"], record["visibility"], placed(record))
            thing.sources = list(sources)
            self.model.pipelines[thing.id] = thing

    async def construct(self) -> None:
        who, actor = self.asker()
        word, name = self.word(), self.word()
        body = {"document_id": name, "text": mascot(word)}
        await self.ok(actor.post(f"{GRAPHS}/construct-graph", json=body), f"{who} constructs {name}")
        self.model.constructed.setdefault(who, {})[name] = word

    async def drop_constructed(self) -> None:
        who, actor = self.asker()
        for name in self.pick(sorted(self.model.constructed.get(who, {}))):
            for other in self.pick(sorted(set(self.people) - {who})):
                missed = await self.people[other].delete(f"{GRAPHS}/graph/document/{name}")
                assert missed.json()["document_deleted"] == 0, missed.body
            await self.ok(actor.delete(f"{GRAPHS}/graph/document/{name}"), f"{who} drops {name}")
            del self.model.constructed[who][name]

    async def switch_graph(self) -> None:
        for base in self.pick(list(self.model.bases.values())):
            base.graph = not base.graph
            body = {"graph": base.graph}
            await self.ok(self.people[base.owner].patch(f"{BASES}/{base.id}", json=body), f"{base.id} {body}")
            if base.graph:
                await self.running.run_jobs()

    async def reshare_base(self) -> None:
        await self.reshare(BASES, self.model.bases)

    async def reshare_pipeline(self) -> None:
        await self.reshare(PIPELINES, self.model.pipelines)

    async def reshare(self, path: str, things: Mapping[str, Thing]) -> None:
        for thing in self.pick(list(things.values())):
            sharing = self.sharing(thing.owner)
            answer = self.people[thing.owner].patch(f"{path}/{thing.id}", json=sharing)
            record = await self.ok(answer, f"{thing.owner} shares {thing.id} {sharing}")
            thing.visibility, thing.place = record["visibility"], placed(record)

    # what is looked at

    async def look_as(self, who: str) -> None:
        """Before and after a change, so that what is remembered of somebody can't be what answers."""
        await self.listed(BASES, self.model.bases, "owner_id", who)
        await self.ask(who)

    async def ask(self, who: str | None = None) -> None:
        for pipeline in self.pick(list(self.model.pipelines.values())):
            who, actor = self.asker(who)
            hybrid = self.dice.random() < 0.5
            body = {"question": "Where does the mascot live?", "top_k": 100, "hybrid": hybrid}
            filter_word = self.any_word() if self.dice.random() < 0.2 else ""
            if filter_word:
                body["metadata_filter"] = {"source": f"{filter_word}.md"}
            elif self.dice.random() < 0.1:
                body["metadata_filter"] = {"document_id": self.any_document()}
            streamed = self.dice.random() < 0.2
            headers = {"Accept": "text/event-stream"} if streamed else {}
            answer = await actor.post(f"{PIPELINES}/{pipeline.id}/query", json=body, headers=headers)
            self.log.append(f"{who} asks {pipeline.id}: {answer.status}")
            if not self.model.sees(who, pipeline):
                self.hidden(answer, pipeline)
                continue
            bases = [self.model.bases[one] for one in pipeline.sources]
            visible = [base for base in bases if self.model.sees(who, base)]
            assert answer.status == (200 if visible else 409), (answer.status, answer.body)
            allowed = {word for base in visible for word in base.words_of(who)}
            self.only(answer, allowed | {filter_word})  # the answer repeats what was asked for
            if visible and not streamed and "metadata_filter" not in body:
                cited = {source["source"].removesuffix(".md") for source in answer.json()["sources"]}
                there = {name for base in visible for name, _ in base.documents_of(who).values()}
                # Without a source the answer declines, which is its right; one that cites leaves nobody out.
                assert cited in (set(), there) or len(there) > MOST_CITED, (cited, there)

    async def list_bases(self) -> None:
        await self.listed(BASES, self.model.bases, "owner_id")

    async def list_pipelines(self) -> None:
        who, items = await self.listed(PIPELINES, self.model.pipelines, "owner_user_id")
        for item in items:
            sources = self.model.pipelines[item["id"]].sources
            expected = [one for one in sources if self.model.sees(who, self.model.bases[one])]
            assert item["knowledge_base_ids"] == expected, item

    async def listed(
        self, path: str, things: Mapping[str, Thing], owner: str, who: str | None = None
    ) -> tuple[str, Any]:
        by = None if who else self.dice.choice([None, *self.people])
        who, actor = self.asker(who)
        query = "" if by is None else f"&{owner}={self.id(by)}"
        answer = await actor.get(f"{path}?limit=500{query}")
        assert answer.status == 200, answer.body
        expected = {
            thing.id
            for thing in things.values()
            if self.model.sees(who, thing) and (by is None or thing.owner == by)
        }
        page = answer.json()
        self.log.append(f"{who} lists {path}{query}: {page['total']}")
        assert {item["id"] for item in page["items"]} == expected
        assert page["total"] == len(expected)
        self.only(answer, {word for one in expected for word in things[one].words_of(who)})
        return who, page["items"]

    async def read_base(self) -> None:
        for base in self.pick(list(self.model.bases.values())):
            who, actor = self.asker()
            answer = await actor.get(f"{BASES}/{base.id}")
            if self.model.sees(who, base):
                assert (answer.status, answer.json()["document_count"]) == (200, len(base.documents_of(who)))
                self.only(answer, base.words_of(who))
            else:
                self.hidden(answer, base)

    async def read_pipeline(self) -> None:
        for pipeline in self.pick(list(self.model.pipelines.values())):
            who, actor = self.asker()
            answer = await actor.get(f"{PIPELINES}/{pipeline.id}")
            if self.model.sees(who, pipeline):
                assert answer.status == 200
                self.only(answer, pipeline.words)
            else:
                self.hidden(answer, pipeline)

    async def read_documents(self) -> None:
        for base in self.pick(list(self.model.bases.values())):
            who, actor = self.asker()
            path = f"{BASES}/{base.id}/documents"
            answer = await actor.get(f"{path}?limit=500")
            if not self.model.sees(who, base):
                self.hidden(answer, base)
                continue
            page = answer.json()
            assert {item["document_id"] for item in page["items"]} == set(base.documents_of(who))
            assert page["total"] == len(base.documents_of(who))
            self.only(answer, base.words_of(who))
            for item in self.pick(page["items"]):
                for rest in ("", "/chunks", "/content"):
                    self.only(await actor.get(f"{path}/{item['document_id']}{rest}"), base.words_of(who))
            for hidden in self.pick(sorted(base.documents.keys() - base.documents_of(who).keys())):
                for rest in ("", "/chunks", "/content", "/versions", "/metadata", "/difference"):
                    assert (await actor.get(f"{path}/{hidden}{rest}")).status == 404

    async def look_at_graphs(self) -> None:
        """Counts, neighbours, correlations, topics and statements are those of the graphs that one sees.

        All graphs name one place, and each one word besides, so every number follows from the model.
        """
        who, actor = self.asker()
        documents = self.model.graphs_of(who)
        words = set(documents.values())
        self.log.append(f"{who} looks at {len(documents)} graphs")

        async def answer(path: str, expected: int = 200, **body: object) -> Any:
            url = f"{GRAPHS}/{path}"
            reply = await (actor.post(url, json=body) if body else actor.get(url))
            assert reply.status == expected, (path, reply.status, reply.body)
            asked_for = set(WORD.findall(str(body)))  # an answer repeats the question
            self.only(reply, words | set(documents) | self.model.names_of(documents) | asked_for)
            return reply.json() if expected == 200 else None

        counted = await answer("graph/stats")
        many = len(documents)
        assert counted["documents"] == many
        assert counted["entities"] == (many + 1 if many else 0)
        assert counted["nodes"] == (2 * many + 1 if many else 0)
        assert counted["relationships"] == many
        listed = await answer("graph/documents?limit=500")
        assert {item["id"] for item in listed["documents"]} == set(documents)
        assert listed["count"] == many
        near = await answer("retrieve", query="Where is Port Senja?", limit=100, traversal_depth=4)
        assert {one["text"] for one in near["related_entities"]} == words or many > MOST_CITED
        results = await answer("graph/search", query="zq", limit=50)
        assert {one["text"] for one in results["entities"]} <= words
        assert results["entity_count"] == min(50, many)
        if many:
            context = await answer("entity-context", entity_text="Port Senja", context_window=10)
            assert {one["id"] for one in context["documents"]} <= set(documents)
            assert len(context["documents"]) == min(50, many)
        else:
            await answer("entity-context", 404, entity_text="Port Senja")
        pairs = await answer("graph/correlations?limit=100")
        assert {end for one in pairs["items"] for end in (one["source"], one["target"])} <= set(documents)
        overview = await answer("overview", limit=20)
        assert (overview["documents"], overview["entities"]) == (many, many + 1 if many else 0)
        query = "SELECT ?id WHERE { ?d <https://schema.org/identifier> ?id }"
        stated = await answer("sparql", query=query)
        assert {row["id"]["value"] for row in stated["results"]["bindings"]} == set(documents)
        hidden = self.any_word()
        if hidden not in words:
            await answer("entity-context", 404, entity_text=hidden)
            assert (await answer("retrieve", query=f"Who is {hidden}?"))["entity_count"] == 0

    async def export(self) -> None:
        """Managers get what is shared with the team or organization; others get nothing of it."""
        kind = self.dice.choice(["team", "organization"])
        place = self.dice.choice(list(self.model.teams if kind == "team" else self.model.organizations))
        who, actor = self.asker()
        answer = await actor.get(f"/v1/{kind}s/{place}/export")
        self.log.append(f"{who} exports {kind} {place}: {answer.status}")
        if not self.model.manages(who, kind, place):
            assert answer.status == 403, answer.body
            self.only(answer, set())
            return
        names: set[str] = set()
        for section, things in (("knowledge_bases", self.model.bases), ("pipelines", self.model.pipelines)):
            here = [one for one in things.values() if (one.visibility, one.place) == (kind, place)]
            assert {row["name"] for row in answer.json()[section]} == {one.name for one in here}
            names |= {one.name for one in here}
        self.only(answer, names)

    async def refresh(self) -> None:
        """A token names what was so when it was minted, and what is so after a refresh."""
        who, actor = self.asker()
        old = read_claims(actor.token or "")
        fresh = await claims(actor)
        teams, organizations = self.model.claimed(who)
        assert set(fresh["teams"]) == teams
        assert {(one["id"], one["role"]) for one in fresh["orgs"]} == organizations
        self.log.append(f"{who} refreshes: {old.get('teams')} to {fresh['teams']}")

    # tools

    def somebody(self) -> str:
        return self.dice.choice(list(self.people))

    def asker(self, who: str | None = None) -> tuple[str, Actor]:
        who = who or self.somebody()
        return who, self.people[who]

    def id(self, who: str) -> int:
        return id_of(self.people[who])

    def pick(self, items: Any) -> list[Any]:
        return self.dice.sample(list(items), 1) if items else []

    def a_member(self) -> tuple[int, str | None]:
        """Somebody in an organization who is not an owner, as the last one has to stay."""
        organization = self.dice.choice(list(self.model.organizations))
        members = [who for who, role in self.model.organizations[organization].items() if role != "owner"]
        return organization, self.dice.choice(members) if members else None

    def sharing(self, who: str) -> dict[str, Any]:
        visibility = self.dice.choices(VISIBILITIES, (1, 4, 4, 1))[0]
        if visibility in ("private", "shared"):
            return {"visibility": visibility}
        places = self.model.places(who, visibility)
        if not places:
            return {"visibility": "private"}
        return {"visibility": visibility, f"{visibility}_id": self.dice.choice(places)}

    def word(self) -> str:
        return f"zq{self.dice.getrandbits(40):010x}"

    def any_word(self) -> str:
        return self.dice.choice(sorted(self.dice.choice(list(self.model.bases.values())).words))

    def any_document(self) -> str:
        documents = [one for base in self.model.bases.values() for one in base.documents]
        return self.dice.choice(documents) if documents else "none"

    async def sign_in(self, who: str) -> None:
        """A fresh token, as the change ended the sessions; the old one must be refused."""
        actor = self.people[who]
        assert (await actor.get(BASES)).status == 401
        account = await self.running.platform.database.read(
            lambda session: session.get_one(Account, id_of(actor))
        )
        actor.token = self.running.platform.resource(TOKENS).mint(account, {})

    async def ok(self, answer: Awaitable[Reply], what: str) -> Any:
        reply = await answer
        self.log.append(what)
        assert reply.status < 300, (what, reply.status, reply.body)
        return reply.json() if reply.body else None

    def only(self, answer: Reply, allowed: set[str]) -> None:
        """No word but those that the asker may read."""
        leaked = set(WORD.findall(answer.body.decode(errors="replace"))) - allowed
        assert not leaked, (leaked, answer.body[:500])

    def hidden(self, answer: Reply, thing: Thing) -> None:
        assert answer.status == 404, (answer.status, answer.body)
        self.only(answer, set())
        assert thing.id not in answer.body.decode()


def mascot(word: str) -> str:
    """A text that names two things: a place, and one word."""
    return f"The mascot {word} lives in Port Senja."


def placed(record: dict[str, Any]) -> int | None:
    """The team or organization that a record is shared with."""
    place: int | None = record["team_id"] or record["organization_id"]
    return place


async def test_answers_hold_nothing_out_of_sight(
    database_url: str | None, start_platform: Start, request: pytest.FixtureRequest
) -> None:
    """Searches, lists, counts and citations follow the model at every step; tokens do at a refresh.

    Half of the steps are on SQLite, half on PostgreSQL.
    """
    steps = request.config.getoption("--leak-steps") // 2
    seed = request.config.getoption("--leak-seed") or secrets.randbits(32)
    env = {"DATABASE_URL": database_url}
    running = await start_platform(
        "tenancy", "rag", "extractive_answers", "graph_rdf", HashEmbeddings(), env=env
    )
    fuzzer = Fuzzer(running, random.Random(seed))
    try:
        await fuzzer.begin()
        for _ in range(steps):
            await fuzzer.step()
        findings = [one async for one in of_plugins(running.platform, "reads")]
        assert {one.status for one in findings} == {"ok"}, findings
    except (AssertionError, KeyError, IndexError, ValueError) as error:
        story = "\n".join(fuzzer.log[-40:])
        done = len(fuzzer.log)
        raise AssertionError(
            f"{error}\nafter {done} acts; again with --leak-seed {seed}:\n{story}"
        ) from error
