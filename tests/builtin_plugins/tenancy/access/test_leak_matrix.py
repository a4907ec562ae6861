"""Every route × every kind of actor: nobody learns, counts or changes what is not theirs to see.

The routes come from the running platform; what each cell must answer follows from the route's declared
access and from plain facts about the actor (`leak_world`). `leak_routes` only says how to address the victim:
a route without its row fails here.
"""

from __future__ import annotations

import json
import re
import secrets
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import aiohttp
import pytest
import pytest_asyncio

from builtin_plugins.tenancy.models import GroupChild
from kernel.gateway.app import gateway_app
from kernel.http.endpoint import Endpoint
from kernel.http.routes import Route
from kernel.observe.logs import request_id_var
from kernel.plugins.loading import installed
from kernel.sdk.accounts import TokenScope
from kernel.testing import Reply, platforms
from tests.builtin_plugins.tenancy.leak_routes import CROSSED, MORE, PARAMETERS, PRIVILEGED, ROWS, Row
from tests.builtin_plugins.tenancy.leak_world import (
    NOBODY,
    NOWHERE,
    READERS,
    VARIANTS,
    Person,
    World,
    account,
    give_keys_of,
    job_of,
    make_world,
    new_base,
    new_conversation,
    new_document,
    new_endpoint,
    new_evaluation,
    new_group,
    new_listing,
    new_member,
    new_org_invite,
    new_pipeline,
    new_role,
    new_source,
    new_team_invite,
    new_token,
)
from tests.builtin_plugins.tenancy.tenancy_support import fresh, join, make_team
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.statements import listening

pytestmark = pytest.mark.asyncio(loop_scope="session")

PEOPLE = (
    "anonymous",
    "outsider",
    "other_team",
    "other_org",
    "parent_owner",
    "suspended",
    "deactivated",
    "member",
    "admin",
    "platform_admin",
    "rightful",
    "member_token",
)
LIKE_OTHERS = (
    "sub_owner",
    "parent_member",
    "expired",
    "outsider_token",
    "platform_admin_token",
    "rightful_token",
    "admin_token",
    "other_org_token",
    "ended_token",
)
"""They differ from one of the people only in place, in kind of credential, or in why it has ended."""
BOUND = ("rightful", "member", "admin", "member_token")
"""They see documents' knowledge bases, own them or administer everything, and may not read some documents."""
OWNED = (
    *("kb", "document", "pipeline", "job", "listing", "endpoint"),
    *("source", "evaluation_set", "evaluation_run", "question"),
)
UUIDS = (*OWNED[:-1], "other_kb", "license", "conversation", "chat_session")
_SAVEPOINTS = ("SAVEPOINT", "RELEASE SAVEPOINT", "ROLLBACK TO SAVEPOINT")
PER_REQUEST = ("Date", "X-Request-ID", "X-Response-Time", "Content-Length")

OWN_PROOF = {"/webhook/{path}"}
"""A manifest says how a sender proves itself there, so a token that has ended is no reason to refuse."""

Verdict = Literal["allowed", 401, 403, 404]


class Statements:
    """The SQL statements of each request, by the id that it was sent with."""

    def __init__(self) -> None:
        self.of: defaultdict[str, list[str]] = defaultdict(list)

    def heard(self, _connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        """One statement is about to run. Writes that others made at the same moment add savepoints."""
        if statement.startswith(_SAVEPOINTS):
            return
        self.of[request_id_var.get() or ""].append(statement)


@dataclass
class Sent:
    reply: Reply
    statements: list[str]


@dataclass
class Matrix:
    """The world, the routes, and what has been noticed."""

    world: World
    endpoints: dict[str, Endpoint]
    statements: Statements
    visible_words: set[str]

    def cases(self, person: Person, *, all_of_them: bool) -> Iterator[tuple[str, Row, str]]:
        """(route, row, visibility) of every cell of one actor.

        Who sees the same whatever the visibility, or has a token of an account that has cells of its own, is
        tried with one visibility a row in turn, unless it is `all_of_them`.
        """
        alike = len({self.world.sees(person, variant) for variant in VARIANTS}) == 1
        few = alike or person.is_anonymous or not person.is_active or person.scopes is not None
        for number, (label, row) in enumerate([*((label, ROWS[label]) for label in self.endpoints), *MORE]):
            if row.ends_session:
                continue
            once = row.owned in (None, "listing", "endpoint") or self.endpoints[label].route.deprecated
            for variant in VARIANTS[:1] if once else VARIANTS:
                if all_of_them or not few or once or variant == VARIANTS[number % len(VARIANTS)]:
                    yield label, row, variant


@pytest.fixture(scope="module")
def statements() -> Iterator[Statements]:
    recorder = Statements()
    with listening(recorder.heard):
        yield recorder


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def matrix(tmp_path_factory: pytest.TempPathFactory, statements: Statements) -> AsyncIterator[Matrix]:
    """A platform with every built-in plugin that remembers nothing, so that statements can be counted."""
    async with platforms(tmp_path_factory.mktemp("leaks")) as start:
        names = [candidate.name for candidate in installed()]
        cold = {"PLATFORM_ACCOUNT_CACHE_SECONDS": "0"}
        running = await start(*names, HashEmbeddings(), env=cold)
        served = gateway_app(running.platform).endpoints
        endpoints = {f"{one.route.method} {one.template.openapi}": one for one in served}
        yield Matrix(await make_world(running), endpoints, statements, set())


async def test_every_route_has_its_row(matrix: Matrix) -> None:
    """A new route comes with a row in `leak_routes` that says how to address the victim by it."""
    assert set(matrix.endpoints) - set(ROWS) == set(), "add rows for these to leak_routes"
    assert set(ROWS) - set(matrix.endpoints) == set(), "these are no routes any more"
    assert {label for label, _ in (*MORE, *CROSSED)} <= set(matrix.endpoints)


async def test_privileged_routes_are_known(matrix: Matrix) -> None:
    """A route that asks for more than an account is listed, so that asking for less is a decision."""
    found = defaultdict(set)
    for label, endpoint in matrix.endpoints.items():
        access = endpoint.route.access
        if access.kind not in ("public", "authenticated"):
            found[access.permission or access.kind].add(label)
    assert found == PRIVILEGED


@pytest.mark.parametrize(
    "name", [*PEOPLE, *(pytest.param(name, marks=pytest.mark.long) for name in LIKE_OTHERS)]
)
async def test_cells(matrix: Matrix, name: str, request: pytest.FixtureRequest) -> None:
    """All cells of one actor: the answer, its words, its counts, and that it changes nothing."""
    world, person = matrix.world, matrix.world.people[name]
    before = await victims_view(world)
    problems = []
    cases = matrix.cases(person, all_of_them=request.config.getoption("rest"))
    for label, row, variant in cases:
        problems += [f"{label} [{variant}]: {one}" async for one in cell(matrix, person, label, row, variant)]
    assert not problems, "\n".join(one[:400] for one in problems)
    assert await victims_view(world) == before


async def test_every_canary_is_shown_to_somebody(matrix: Matrix, request: pytest.FixtureRequest) -> None:
    """The control of the words: whoever may read them has read them by now, else they would prove nothing."""
    if not matrix.visible_words:
        await test_cells(matrix, "rightful", request)
    kinds = {kind_of(word) for word in matrix.world.canaries}
    assert kinds == {kind_of(word) for word in matrix.visible_words}


@pytest.mark.parametrize("variant", VARIANTS)
async def test_things_of_others_in_a_place_of_ones_own(matrix: Matrix, variant: str) -> None:
    """The id of a victim's thing below one's own organization or knowledge base is as an unknown one."""
    person = matrix.world.people["other_org"]
    problems = []
    for label, row in CROSSED:
        ids = addressed(matrix.world, row, variant)
        nowhere = unknown(matrix.world, ids, row, own="other_")
        here = await send(matrix, person, label, row, ids)
        there = await send(matrix, person, label, row, nowhere)
        if here.reply.status < 400:
            problems.append(f"{label}: {here.reply.status}")
        problems += [f"{label}: {one}" for one in differences(here, there, ids, nowhere)]
        problems += [f"{label}: {one}" for one in leaks(matrix, person, row, here.reply)]
    assert not problems, "\n".join(one[:400] for one in problems)


@pytest.mark.parametrize("name", BOUND)
async def test_documents_for_others_are_as_unknown(matrix: Matrix, name: str) -> None:
    """In a knowledge base that one sees, a document that one may not read is as one that never existed."""
    world, person = matrix.world, matrix.world.people[name]
    problems, tried = [], 0
    for label, row in [*((label, ROWS[label]) for label in matrix.endpoints), *MORE]:
        if "{document_id}" not in label and "@document" not in json.dumps(row.body):
            continue
        for variant in VARIANTS:
            if not world.sees(person, variant) or person.id == world.people[READERS[variant]].id:
                continue
            here = addressed(world, row, variant)
            nowhere = with_paths({**here, "document": NOWHERE}, row)
            guarded = with_paths({**here, "document": world.ids[f"guarded:{variant}"]}, row)
            sent = await send(matrix, person, label, row, guarded)
            there = await send(matrix, person, label, row, nowhere)
            tried += 1
            for one in (*differences(sent, there, guarded, nowhere), *leaks(matrix, person, row, sent.reply)):
                problems.append(f"{label} [{variant}]: {one}")
    assert tried > 10
    assert not problems, "\n".join(one[:400] for one in problems)


async def cell(matrix: Matrix, person: Person, label: str, row: Row, variant: str) -> AsyncIterator[str]:
    world, endpoint = matrix.world, matrix.endpoints[label]
    verdict, hidden = expected(world, person, endpoint, row, variant)
    ids = addressed(world, row, variant)
    if verdict == "allowed" and row.consumes:
        await renew(world, ids, row, variant)
    sent = await send(matrix, person, label, row, ids)
    status = sent.reply.status
    if verdict != "allowed":
        if status != verdict:
            yield f"{status} instead of {verdict}: {sent.reply.body[:200]!r}"
    elif person.name != "anonymous" and not (status < 300 or status in row.control):
        yield f"{status} where it is allowed: {sent.reply.body[:300]!r}"
    for problem in leaks(matrix, person, row if verdict == "allowed" else Row(), sent.reply):
        yield problem
    if hidden:
        nowhere = unknown(world, ids, row)
        there = await send(matrix, person, label, row, nowhere)
        for problem in differences(sent, there, ids, nowhere):
            yield problem


def expected(
    world: World, person: Person, endpoint: Endpoint, row: Row, variant: str
) -> tuple[Verdict, bool]:
    """What the declaration and the facts say, and whether the answer must be that of an unknown thing."""
    route = endpoint.route
    if not person.is_active and endpoint.template.openapi not in OWN_PROOF:
        return 401, False
    is_open = route.access.kind == "public"
    looks_at_token = not is_open or route.access.better_with_token
    if looks_at_token and person.scopes is not None and not narrow_enough(person.scopes, route):
        return 403, True
    if is_open:
        return "allowed", False
    if person.is_anonymous:
        return 401, not endpoint.template.openapi.startswith("/v1/plugins")
    stranger = not world.views(person)
    if not admitted(world, person, endpoint, row):
        within = route.access.permission and world.permissions[route.access.permission].scope
        return 403, stranger and within == "organization"
    if row.asks is not None:
        key, where, or_admin = row.asks
        if not world.holds(person, key, world.ids[where], or_admin=or_admin):
            if row.hides and world.ids[where] not in person.teams:
                return 404, True
            return 403, stranger and where == "organization"
    if row.member_of is not None:
        inside = person.organizations if row.member_of == "organization" else person.teams
        place = world.ids[row.member_of]
        if place not in inside and not (row.also_suspended and place in person.suspended_in):
            return 403, True
    if row.owned is not None:
        if not world.sees(person, variant):
            return 404, True
        changes = route.method != "GET" if row.changes is None else row.changes
        if changes and person.id != world.victim.id and not person.is_admin:
            return 403, False
    if row.own and person.id != world.victim.id:
        return 404, True
    return "allowed", False


def narrow_enough(scopes: frozenset[TokenScope], route: Route) -> bool:
    """Whether a token with these scopes passes a route; what the scopes are is `test_scope_table`'s."""
    implied = scopes | ({"ask"} if "manage" in scopes else set())
    return not implied.isdisjoint(route.token_scopes)


def admitted(world: World, person: Person, endpoint: Endpoint, row: Row) -> bool:
    """Whether the declared access lets an active account in."""
    access = endpoint.route.access
    if access.kind == "authenticated":
        return True
    if access.kind in ("admin", "admin_or_service"):
        return person.is_admin
    if access.kind == "platform_admin":
        return person.is_platform_admin
    key = world.permissions[access.permission or ""]
    if key.scope == "instance":
        granted = key.granted_to == "user" or (key.granted_to == "admin" and person.is_admin)
        return granted or (row.platform_admins and person.is_platform_admin)
    if access.or_self and world.ids[PARAMETERS[access.or_self]] == person.id:
        return True
    place = world.ids[PARAMETERS[access.within or ""]]
    return world.holds(person, key.key, place, or_admin=access.or_admin)


def addressed(world: World, row: Row, variant: str) -> dict[str, Any]:
    """The ids of a cell: the world's, those of the visibility under their plain names, and new words."""
    word = fresh("made")
    ids = {**world.ids, "unknown": "unknown", "victim": world.victim.id, "newcomer": world.ids["user"]}
    ids |= {what: world.ids[f"{what}:{variant}"] for what in OWNED}
    ids |= {"fresh": word, "fresh_email": f"{word}@example.org", "gpu": "gpu"}
    ids["org_name"] = next(word for word in world.canaries if word.startswith("canary-org-name"))
    return with_paths(ids, row)


def unknown(world: World, ids: dict[str, Any], row: Row, own: str = "-") -> dict[str, Any]:
    """The same, with ids that nothing ever had but for those names that begin with `own`."""
    filled_ids = dict(ids)
    for at, name in enumerate([*world.ids, *OWNED, "newcomer"]):
        if not name.startswith((own, "insider_email")):
            filled_ids[name] = NOWHERE if name.partition(":")[0] in UUIDS else NOBODY + at
    return with_paths(filled_ids, row)


def with_paths(ids: dict[str, Any], row: Row) -> dict[str, Any]:
    return ids | {f"path:{parameter}": ids[what] for parameter, what in row.ids}


async def renew(world: World, ids: dict[str, Any], row: Row, variant: str) -> None:
    """New things of the victim in place of those that an allowed call uses up."""
    organization = world.ids["organization"]
    for what in row.consumes:
        if what == "kb":
            ids["kb"] = await new_base(world, variant)
        elif what == "document":
            ids["document"] = await new_document(world, ids["kb"], variant)
        elif what == "job":
            base = await new_base(world, variant)
            ids["job"] = await job_of(world, await new_document(world, base, variant))
        elif what == "pipeline":
            ids["pipeline"] = await new_pipeline(world, variant, ids["kb"])
        elif what == "listing":
            ids["listing"] = await new_listing(world)
        elif what == "conversation":
            ids["conversation"] = await new_conversation(world)
        elif what == "shared_conversation":
            ids["conversation"] = await new_conversation(world, "What may others read?")
        elif what == "endpoint":
            ids["endpoint"], ids["chat_session"] = await new_endpoint(world)
        elif what == "evaluation_set":
            evaluation_ids = await new_evaluation(world, variant, ids["kb"])
            ids["evaluation_set"], ids["question"], ids["evaluation_run"] = evaluation_ids
        elif what == "source":
            ids["source"] = await new_source(world, ids["kb"])
        elif what == "user":
            ids["user"] = await new_member(world)
        elif what == "newcomer":
            newcomer = await account(world, "newcomer")
            await join(world.running, organization, newcomer.actor)
            ids["newcomer"] = newcomer.id
        elif what == "access_token":
            ids["access_token"] = await new_token(world)
        elif what == "team":
            ids["team"] = await make_team(world.running, world.victim.actor, organization=organization)
        elif what == "team_invite":
            ids["path:invite_id"] = await new_team_invite(world)
        elif what == "org_invite":
            ids["path:invite_id"] = await new_org_invite(world)
        elif what == "role":
            ids["role"] = await new_role(world, organization, fresh("role"))
        elif what == "group":
            ids["group"] = await new_group(world, organization, fresh("group"))
        elif what == "assignment":
            ids["user"] = await new_member(world)
            await give_keys_of(world, ids["role"], ids["user"])
        elif what == "nesting":
            ids["group"] = await new_group(world, organization, fresh("group"))
            ids["child_group"] = world.ids["spare_group"]
            await world.running.platform.database.write(
                lambda unit: unit.session.add(
                    GroupChild(group_id=ids["group"], child_group_id=ids["child_group"])
                )
            )
        else:
            raise AssertionError(what)


async def send(matrix: Matrix, person: Person, label: str, row: Row, ids: dict[str, Any]) -> Sent:
    """Send the request of a row with these ids."""
    method, template = label.split(" ")
    path = re.sub(r"{(\w+)}", lambda match: str(filled_parameter(match[1], ids)), template)
    query = re.sub(r"@(\w+)", lambda match: str(ids[match[1]]), row.query)
    options: dict[str, Any] = {"headers": {"X-Request-ID": f"leak-{secrets.token_hex(8)}"}}
    if row.upload:
        form = aiohttp.FormData()
        form.add_field("file", b"Words.", filename="words.txt", content_type="text/plain")
        options["data"] = form
    elif row.raw is not None:
        options["data"] = row.raw
    elif row.body is not None:
        options["json"] = filled(row.body, ids)
    reply = await person.actor.request(method, f"{path}?{query}" if query else path, **options)
    texts = matrix.statements.of.pop(options["headers"]["X-Request-ID"], [])
    return Sent(reply, sorted(texts))


def filled_parameter(name: str, ids: dict[str, Any]) -> Any:
    return ids.get(f"path:{name}", ids[PARAMETERS[name]] if name in PARAMETERS else None)


def filled(body: Any, ids: dict[str, Any]) -> Any:
    """The body with its `@words` replaced."""
    if isinstance(body, dict):
        return {key: filled(value, ids) for key, value in body.items()}
    if isinstance(body, list):
        return [filled(value, ids) for value in body]
    if isinstance(body, str) and not body.startswith("@"):
        return re.sub(r"(?<=/)@(\w+)", lambda match: str(ids[match[1]]), body)
    return ids[body[1:]] if isinstance(body, str) else body


def leaks(matrix: Matrix, person: Person, row: Row, reply: Reply) -> Iterator[str]:
    """Words that the actor may not read, in body or headers; and counts of more than is listed."""
    text = reply.body.decode(errors="replace") + "".join(f"{k}{v}" for k, v in reply.headers.items())
    for word in set(re.findall(r"canary-[\w-]+?-[0-9a-f]{12}", text)):
        if matrix.world.canaries[word](person):
            matrix.visible_words.add(word)
        elif not any(word.startswith(f"canary-{beginning}") for beginning in row.reveals):
            yield f"shows {word}"
    if reply.status == 200 and reply.body.startswith(b"{"):
        answer = json.loads(reply.body)
        listed = isinstance(answer, dict) and {"items", "total"} <= set(answer)
        if listed and answer["total"] != min(len(answer["items"]), answer.get("limit", answer["total"])):
            yield f"counts {answer['total']} and lists {len(answer['items'])}"


def differences(here: Sent, there: Sent, ids: dict[str, Any], nowhere: dict[str, Any]) -> Iterator[str]:
    """Whatever tells a hidden thing from one that never existed, but for the ids that were asked for."""
    if here.reply.status != there.reply.status:
        yield f"{here.reply.status}, but {there.reply.status} when unknown: {there.reply.body[:200]!r}"
    if plain(here.reply.body, ids) != plain(there.reply.body, nowhere):
        yield f"{here.reply.body[:200]!r}, but {there.reply.body[:200]!r} when unknown"
    headers = [dict(one.reply.headers) for one in (here, there)]
    for each in headers:
        for name in PER_REQUEST:
            each.pop(name, None)
    if headers[0] != headers[1]:
        yield f"headers {headers[0]}, but {headers[1]} when unknown"
    if here.statements != there.statements:
        more, less = Counter(here.statements), Counter(there.statements)
        texts = " | ".join(map(str, (more - less).elements())), " | ".join((less - more).elements())
        yield f"{more.total()} statements, but {less.total()} when unknown: {texts[0]} / {texts[1]}"


def plain(body: bytes, ids: dict[str, Any]) -> str:
    """A body without the ids that were asked for."""
    requested_ids = {
        str(value) for value in ids.values() if isinstance(value, int) or len(value) == len(NOWHERE)
    }
    text = body.decode(errors="replace")
    return re.sub(r"[\w-]+", lambda word: "#" if word[0] in requested_ids else word[0], text)


def kind_of(word: str) -> str:
    return word.rpartition("-")[0]


async def victims_view(world: World) -> list[tuple[int, bytes]]:
    """The victim's things as the victim sees them: nobody else's calls may change that."""
    ids, organization = world.ids, f"/v1/organizations/{world.ids['organization']}"
    paths = [
        *(f"/v1/rag/knowledge-bases/{ids[f'kb:{variant}']}" for variant in VARIANTS),
        *(f"/v1/rag/knowledge-bases/{ids[f'kb:{variant}']}/documents?limit=500" for variant in VARIANTS[:1]),
        *(f"/v1/rag/pipeline/{ids[f'pipeline:{variant}']}" for variant in VARIANTS),
        organization,
        *(f"{organization}/roles/{ids[what]}" for what in ("role", "spare_role")),
        *(f"{organization}/permission-groups/{ids[what]}" for what in ("group", "child_group")),
        f"{organization}/members/{ids['user']}/roles",
    ]
    answers = [await world.victim.actor.get(path) for path in paths]
    assert {answer.status for answer in answers} == {200}
    return [
        (answer.status, re.sub(rb'"(document|vector|member)_count":\d+', b"", answer.body))
        for answer in answers
    ]
