"""Random walks through accounts, sessions, claims and grants, over HTTP, held against plain rules.

After every step each session opens exactly what the rules say, the rows of all accounts are those of the
model, and the audit log has counted every grant, revocation and refused claim. A longer run:
``pytest tests/builtin_plugins/accounts/test_identity_states.py --identity-walks 200``.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar

import jwt
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import select

from builtin_plugins.accounts.api import ADMINISTRATION, ExternalIdentity, sign_in_external
from builtin_plugins.accounts.errors import AccountDisabled
from builtin_plugins.accounts.link_approvals import approve, withdraw
from builtin_plugins.accounts.platform_admins import PLATFORM_ADMINS
from builtin_plugins.accounts.setup_codes import SETUP_CODES, SetupCodesClosed
from kernel.auth.models import Account
from kernel.errors import Conflict
from kernel.sdk.accounts import operator_of
from kernel.testing import Actor, Reply, Running, platforms
from tests.builtin_plugins.accounts.identity_model import WRONG_CODES, Model, Person, Session
from tests.fakes.audit import audited
from tests.fakes.earlier_release import PASSWORD, make_earlier_release

T = TypeVar("T")

NAMES = ("ada", "bea", "cleo", "dora")
PASSWORDS = ("correct horse", "battery staple", PASSWORD)
ISSUER = "https://id.example.org"
CLAIM = "/v1/auth/platform-admin/claim"
SESSIONS = 8  # that are kept and looked at after each step; older ones are forgotten
ACCOUNTS = 5

somebody = st.integers(0, ACCOUNTS - 1)
some_session = st.integers(0, SESSIONS - 1)
password = st.sampled_from(PASSWORDS)
role = st.sampled_from(["user", "admin"])
Who = Callable[[Person], bool] | None
really = st.sampled_from([True] * 3 + [False])  # whether a step changes something, or tries what can't be


def is_platform_admin(person: Person) -> bool:
    return person.platform_admin


def is_admin(person: Person) -> bool:
    return person.role == "admin"


admin_or_anybody: st.SearchStrategy[Who] = st.sampled_from([is_platform_admin] * 3 + [None])
claimant_or_anybody: st.SearchStrategy[Who] = st.sampled_from([is_admin, None])


class Walk(RuleBasedStateMachine):
    """One platform and its model."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.stack = AsyncExitStack()
        self.sessions: list[Session] = []

    # Plumbing

    @initialize(upgraded=st.booleans(), admins=st.integers(1, 2), sessions=st.integers(0, 3))
    def boot(self, upgraded: bool, admins: int, sessions: int) -> None:
        """A fresh install, or one that had administrators before this release; some have signed in."""
        self.model = Model(upgraded)
        self.model.people = [Person(name, PASSWORD) for name in NAMES]
        self.run(self._boot(admins))
        for number in range(sessions):
            self.enter(number, PASSWORD)

    async def _boot(self, admins: int) -> None:
        home = Path(self.stack.enter_context(tempfile.TemporaryDirectory())) / "home"
        roles = {name: "admin" if number < admins else "user" for number, name in enumerate(NAMES)}
        start = await self.stack.enter_async_context(platforms(home))
        await make_earlier_release(
            home, None, **(roles if self.model.upgraded else dict.fromkeys(NAMES, "user"))
        )
        self.running: Running = await start()
        self.platform = self.running.platform
        for number, person in enumerate(self.model.people, start=1):
            person.id, person.role = number, roles[person.name]
            await self.platform.resource(ADMINISTRATION).set_role(
                operator_of(self.platform), number, person.role
            )

    def teardown(self) -> None:
        self.runner.run(self.stack.aclose())
        self.runner.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def send(self, session: Session | None, method: str, path: str, **body: Any) -> Reply:
        actor = Actor(self.running, session.token if session else None)
        return self.run(actor.request(method, path, **({"json": body} if body else {})))

    def person(self, number: int) -> Person:
        return self.model.living[number % len(self.model.living)]

    def session(self, number: int, what: Callable[[Person], bool] | None = None) -> Session:
        """One of the sessions; with `what` a live one of such a person, who signs in for it if need be."""
        if what is None:
            return self.sessions[number % len(self.sessions)]
        if not any(s.is_live and what(s.person) for s in self.sessions):
            able = [n for n, p in enumerate(self.model.living) if what(p) and p.active and not p.linked]
            if able:
                chosen = able[number % len(able)]
                self.enter(chosen, self.person(chosen).password)
        candidates = [s for s in self.sessions if s.is_live and what(s.person)] or self.sessions
        return candidates[number % len(candidates)]

    def keep(self, person: Person, token: str) -> None:
        """A new session; its token says what is true now."""
        claims = jwt.decode(token, options={"verify_signature": False})
        identity = (claims["sub"], claims["role"], claims["platform_admin"], claims["epoch"])
        assert identity == (str(person.id), person.role, person.platform_admin, person.epoch)
        self.sessions = [*self.sessions, Session(person, token, person.epoch)][-SESSIONS:]

    # What anybody does

    @precondition(lambda self: len(self.model.living) < ACCOUNTS)
    @rule(wish=role)
    def register(self, wish: str) -> None:
        """Whatever role the body asks for, it is a user."""
        name = f"new-{len(self.model.people)}"
        body = {"username": name, "email": f"{name}@example.org", "password": PASSWORD, "role": wish}
        answer = self.send(None, "POST", "/v1/auth/register", **body)
        assert answer.status == 201
        self.model.people.append(Person(name, PASSWORD, id=answer.json()["user"]["id"]))

    @rule(number=somebody, attempt=password, really=really)
    def sign_in(self, number: int, attempt: str, really: bool) -> None:
        self.enter(number, self.person(number).password if really else attempt)

    def enter(self, number: int, attempt: str) -> None:
        person = self.person(number)
        answer = self.send(None, "POST", "/v1/auth/login", username=person.name, password=attempt)
        assert answer.status == self.model.sign_in(person, attempt)
        if answer.status == 200:
            assert answer.json()["user"]["must_change_password"] == person.must_change
            self.keep(person, answer.json()["access_token"])

    @precondition(lambda self: self.sessions)
    @rule(number=some_session)
    def refresh(self, number: int) -> None:
        session = self.session(number)
        answer = self.send(session, "POST", "/v1/auth/refresh")
        assert answer.status == (200 if session.is_live else 401)
        if answer.status == 200:
            self.keep(session.person, answer.json()["access_token"])

    @precondition(lambda self: self.sessions)
    @rule(number=some_session, new=password, really=really)
    def change_password(self, number: int, new: str, really: bool) -> None:
        session = self.session(number)
        current = session.person.password if really else "not the password"
        body = {"current_password": current, "new_password": new}
        answer = self.send(session, "POST", "/v1/auth/change-password", **body)
        assert answer.status == self.model.change_password(session, current, new)
        if answer.status == 200:
            self.keep(session.person, answer.json()["access_token"])

    # What a Platform Admin does, and others try

    @precondition(lambda self: self.sessions)
    @rule(number=some_session, who=admin_or_anybody, other=somebody, really=really)
    def set_role(self, number: int, who: Who, other: int, really: bool) -> None:
        session, person = self.session(number, who), self.person(other)
        wish = "user" if (person.role == "admin") == really else "admin"
        expected = self.model.administer(session, "role", person)
        answer = self.send(session, "PATCH", f"/v1/auth/users/{person.id}/role", role=wish)
        assert answer.status == (self.model.set_role(person, wish) if expected == 200 else expected)

    @precondition(lambda self: self.sessions)
    @rule(number=some_session, who=admin_or_anybody, other=somebody, really=really)
    def set_active(self, number: int, who: Who, other: int, really: bool) -> None:
        session, person = self.session(number, who), self.person(other)
        wish = person.active != really
        expected = self.model.administer(session, "status", person)
        answer = self.send(session, "PATCH", f"/v1/auth/users/{person.id}/status", is_active=wish)
        assert answer.status == (self.model.set_active(person, wish) if expected == 200 else expected)

    @precondition(lambda self: self.sessions)
    @rule(number=some_session, who=admin_or_anybody, other=somebody, new=password)
    def reset(self, number: int, who: Who, other: int, new: str) -> None:
        session, person = self.session(number, who), self.person(other)
        body = {"mode": "set", "new_password": new}
        answer = self.send(session, "POST", f"/v1/auth/users/{person.id}/reset-password", **body)
        assert answer.status == self.model.administer(session, "reset", person)
        if answer.status == 200:
            self.model.reset(person, new)

    @precondition(lambda self: self.sessions)
    @rule(number=some_session, who=admin_or_anybody, other=somebody)
    def delete(self, number: int, who: Who, other: int) -> None:
        session, person = self.session(number, who), self.person(other)
        expected = self.model.administer(session, "status", person)
        answer = self.send(session, "DELETE", f"/v1/auth/users/{person.id}")
        assert answer.status == (self.model.delete(person) if expected == 200 else expected)

    @precondition(lambda self: self.sessions)
    @rule(number=some_session, really=really)
    def delete_own(self, number: int, really: bool) -> None:
        session = self.session(number)
        attempt = session.person.password if really else "not the password"
        answer = self.send(session, "DELETE", "/v1/auth/me", password=attempt)
        assert answer.status == self.model.delete_own(session, attempt)

    # Setup codes

    @rule()
    def issue(self) -> None:
        allowed = self.model.may_issue()
        try:
            code, _ = self.run(self.platform.resource(SETUP_CODES).issue())
        except SetupCodesClosed:
            assert not allowed
        else:
            assert allowed
            self.model.issue(code)

    @precondition(lambda self: self.sessions)
    @rule(
        number=some_session,
        who=claimant_or_anybody,
        right=st.booleans(),
        times=st.sampled_from([1, WRONG_CODES + 1]),
    )
    def claim(self, number: int, who: Who, right: bool, times: int) -> None:
        session = self.session(number, who)
        if right and self.model.may_issue() and self.model.code is None:
            self.issue()
        code = self.model.code if right and self.model.code else "AAAAAA-BBBBBB-CCCCCC"
        for _ in range(times):
            expected = self.model.claim(session, code)
            assert self.send(session, "POST", CLAIM, code=code).status == expected

    # What the operator does on the server

    @rule(other=somebody)
    def grant(self, other: int) -> None:
        person = self.person(other)
        expected = None if person.platform_admin or person.active else AccountDisabled
        changed = self.run(_outcome(self.platform.resource(PLATFORM_ADMINS).grant(person.name), expected))
        assert changed == (person.active and not person.platform_admin)
        if changed:
            self.model.grant(person)

    @rule(other=somebody)
    def revoke(self, other: int) -> None:
        person = self.person(other)
        changed = self.run(_outcome(self.platform.resource(PLATFORM_ADMINS).revoke(person.name), None))
        assert changed == person.platform_admin
        if changed:
            self.model.withdraw(person)
            person.end_sessions()

    @rule(other=somebody, really=really)
    def set_active_on_the_server(self, other: int, really: bool) -> None:
        person = self.person(other)
        wish = person.active != really
        work = self.platform.resource(ADMINISTRATION).set_active(operator_of(self.platform), person.id, wish)
        refused = self.model.set_active(person, wish) == 409
        if refused:
            with pytest.raises(Conflict):
                self.run(work)
        else:
            self.run(work)

    @rule(other=somebody, wish=st.booleans())
    def approve_link(self, other: int, wish: bool) -> None:
        person = self.person(other)
        change = approve if wish else withdraw
        expected = Conflict if wish and person.linked else None
        changed = self.run(_outcome(change(self.platform, person.name, {}), expected))
        assert changed == (expected is None and person.approved != wish)
        person.approved = wish if expected is None else person.approved

    # The identity provider

    @precondition(lambda self: any(person.approved for person in self.model.people))
    @rule(other=somebody)
    def link(self, other: int) -> None:
        """The person comes from the provider: an active, approved account is taken."""
        approved = [person for person in self.model.people if person.approved]
        person = approved[other % len(approved)]
        role: Any = person.role
        email = f"{person.name}@example.org"
        identity = ExternalIdentity(ISSUER, person.name, person.name, email, role)
        work = sign_in_external(self.platform, identity, {})
        if not person.active:
            with pytest.raises(AccountDisabled):
                self.run(work)
            return
        self.model.link(person)
        self.keep(person, self.run(work)[1])

    # What holds after every step

    @invariant()
    def sessions_open_what_they_should(self) -> None:
        for session in self.sessions:
            allowed = 200 if session.person.platform_admin else 403
            expected = allowed if session.is_live else 401
            assert self.send(session, "GET", "/v1/auth/users").status == expected

    @invariant()
    def rows_are_those_of_the_model(self) -> None:
        rows = [
            (a.id, a.role, a.is_active, a.platform_admin, a.must_change_password, a.epoch, bool(a.linked_at))
            for a in self.run(self._accounts())
        ]
        assert rows == [
            (p.id, p.role, p.active, p.platform_admin, p.must_change, p.epoch, p.linked)
            for p in self.model.people
        ]

    async def _accounts(self) -> list[Account]:
        return await self.platform.database.read(
            lambda session: list(session.scalars(select(Account).order_by(Account.id)))
        )

    @invariant()
    def somebody_is_left(self) -> None:
        assert any(person.active and person.role == "admin" for person in self.model.people)

    @invariant()
    def changes_are_audited(self) -> None:
        counted = Counter(entry.action for entry in self.run(audited(self.platform)))
        assert counted["platform_admin.granted"] == self.model.grants
        assert counted["platform_admin.revoked"] == self.model.revocations
        assert counted["platform_admin.claim_refused"] == self.model.refusals


async def _outcome(work: Awaitable[tuple[Account, bool]], expected: type[Exception] | None) -> bool:
    """Whether something changed; `expected` is what the work raises instead."""
    if expected is None:
        return (await work)[1]
    with pytest.raises(expected):
        await work
    return False


def test_no_way_around() -> None:
    """No walk makes a Platform Admin without a grant, opens an ended session, or leaves nobody in charge."""
    run_state_machine_as_test(
        Walk, settings=settings(settings.get_profile("identity-walks"), stateful_step_count=50)
    )
