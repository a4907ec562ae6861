"""What accounts and sessions may do, as plain rules: the reference of `test_identity_states`."""

from __future__ import annotations

from dataclasses import dataclass, field

WRONG_CODES = 5


@dataclass
class Person:
    """An account. `epoch` counts revocations; a linked one has no password, a deleted one nothing."""

    name: str
    password: str
    role: str = "user"
    id: int = 0
    active: bool = True
    platform_admin: bool = False
    must_change: bool = False
    linked: bool = False
    approved: bool = False
    deleted: bool = False
    epoch: int = 0

    def end_sessions(self) -> None:
        self.epoch += 1


@dataclass
class Session:
    """A token: whose, and what it said when it was made."""

    person: Person
    token: str
    epoch: int

    @property
    def is_live(self) -> bool:
        return self.person.active and self.epoch == self.person.epoch


@dataclass
class Model:
    """An instance. `upgraded`: it had administrators before there were Platform Admins."""

    upgraded: bool
    people: list[Person] = field(default_factory=list)
    ever_platform_admin: bool = False
    codes_closed: bool = False
    code: str | None = None
    wrong: dict[str, int] = field(default_factory=dict)
    grants: int = 0
    revocations: int = 0
    refusals: int = 0

    @property
    def living(self) -> list[Person]:
        return [person for person in self.people if not person.deleted]

    def is_last(self, person: Person, what: str) -> bool:
        """Whether no other active account is an administrator (`role`), or a Platform Admin."""
        group = [p for p in self.people if p.active and self._is(p, what)]
        return group == [person]

    def _is(self, person: Person, what: str) -> bool:
        return person.role == "admin" if what == "role" else person.platform_admin

    def grant(self, person: Person, *, bootstrap: bool = False) -> None:
        person.platform_admin, self.ever_platform_admin = True, True
        self.codes_closed = self.codes_closed or not bootstrap
        self.grants += 1

    def withdraw(self, person: Person) -> None:
        person.platform_admin = False
        self.revocations += 1

    def sign_in(self, person: Person, password: str) -> int:
        if person.linked or password != person.password:
            return 401
        if not person.active:
            return 403
        if person.role == "admin" and not self.upgraded and not self.ever_platform_admin:
            self.grant(person, bootstrap=True)
        return 200

    def change_password(self, session: Session, current: str, new: str) -> int:
        person = session.person
        if not session.is_live:
            return 401
        if person.linked:
            return 409
        if current != person.password or current == new:
            return 400
        person.password, person.must_change = new, False
        person.end_sessions()
        return 200

    def administer(self, session: Session, what: str, target: Person) -> int:
        """Whether the session may change the role, the status or the password of a person."""
        if not session.is_live:
            return 401
        if not session.person.platform_admin:
            return 403
        if what != "role" and session.person is target:
            return 409
        return 409 if what != "status" and target.linked else 200

    def set_role(self, target: Person, role: str) -> int:
        if target.role == "admin" and role == "user":
            if self.is_last(target, "role"):
                return 409
            target.end_sessions()
        target.role = role
        return 200

    def set_active(self, target: Person, active: bool) -> int:
        if target.active and not active:
            if self.is_last(target, "role") or self.is_last(target, "platform_admin"):
                return 409
            target.end_sessions()
        target.active = active
        return 200

    def delete(self, target: Person) -> int:
        if self.is_last(target, "role") or self.is_last(target, "platform_admin"):
            return 409
        target.end_sessions()
        target.deleted, target.active, target.role = True, False, "user"
        target.platform_admin = target.must_change = target.linked = target.approved = False
        return 202

    def delete_own(self, session: Session, password: str) -> int:
        person = session.person
        if not session.is_live:
            return 401
        if not person.linked and password != person.password:
            return 400
        return self.delete(person)

    def reset(self, target: Person, password: str) -> None:
        target.password, target.must_change = password, True
        target.end_sessions()

    def claim(self, session: Session, code: str) -> int:
        status = self._claim(session, code)
        self.refusals += status not in (200, 401)
        return status

    def _claim(self, session: Session, code: str) -> int:
        person = session.person
        if not session.is_live:
            return 401
        if person.platform_admin:
            return 409
        if person.role != "admin":
            return 403
        if not self.may_issue():
            return 404
        if self.code is None or self.wrong.get(person.name, 0) >= WRONG_CODES:
            return 403
        if code != self.code:
            self.wrong[person.name] = self.wrong.get(person.name, 0) + 1
            return 403
        self.grant(person)
        return 200

    def may_issue(self) -> bool:
        past_bootstrap = self.upgraded or self.ever_platform_admin
        return past_bootstrap and not self.codes_closed and not any(p.platform_admin for p in self.people)

    def issue(self, code: str) -> None:
        self.code, self.wrong = code, {}

    def link(self, person: Person) -> None:
        """Somebody from the identity provider takes an approved account, with the role that it had."""
        person.approved, person.linked, person.must_change = False, True, False
        if person.platform_admin:
            self.withdraw(person)
        person.end_sessions()
