"""What accounts ask of other plugins, and what they tell them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from builtin_plugins.accounts.external_schemas import SignInMethod
from builtin_plugins.accounts.schemas import AccountChange, OrganizationMembership
from builtin_plugins.accounts.shared_things import SharedThing
from kernel.sdk import PROMPTLY, hookspec

if TYPE_CHECKING:
    from sqlalchemy import Select
    from sqlalchemy.orm import Session

    from kernel.sdk import Account, Platform, Principal, Scope, Unit
    from kernel.sdk.accounts import Origin


@hookspec.all_now
def token_claims(
    platform: Platform, unit: Unit, account: Account, previous: Mapping[str, Any] | None
) -> Mapping[str, Any] | None:
    """Additional claims for a token of `account` (teams, organizations …), asked for whenever one is issued.

    `previous` are the claims of the token that it replaces, plus those requested in a re-issue (such as an
    organization to switch to); None at sign-in. Claims not returned aren't carried over. Asked inside a unit
    of work: `account` belongs to the caller and is only read.
    """


@hookspec.all(failing="skip", seconds=PROMPTLY)
def sign_in_methods(platform: Platform) -> Sequence[SignInMethod] | None:
    """Ways to sign in besides username and password, shown in ``GET /v1/auth/capabilities``.

    A plugin that is not configured returns none, and its button is hidden.
    """


@hookspec.first(seconds=PROMPTLY)
def find_memberships(
    platform: Platform, account_ids: Sequence[int]
) -> Mapping[int, Sequence[OrganizationMembership]] | None:
    """The organizations of accounts, by account id, for the list of users."""


@hookspec.first_now
def select_members(platform: Platform, organization_id: int) -> Select[tuple[int]] | None:
    """A query for the ids of an organization's accounts, used as a subquery of the list of users."""


@hookspec.first_now
def select_team_members(platform: Platform, team_id: int) -> Select[tuple[int]] | None:
    """A query for the ids of a team's accounts, used as a subquery."""


@hookspec.first_now
def select_sign_in_groups(platform: Platform) -> Select[str, int] | None:
    """A query for the groups that an identity provider has named, used as a subquery.

    Columns `name`, a group's name exactly as the provider writes it, and `account_id`, of an account in it.
    Only what counts now: nothing of an account whose groups are unknown.
    """


@hookspec.first_now
def find_places(
    platform: Platform, session: Session, account_ids: Sequence[int]
) -> Mapping[int, tuple[frozenset[int], frozenset[int]]] | None:
    """The ids of the teams and organizations of accounts, as rows say, for `doctor --leaks`.

    Past every cache, and not by the queries that answer `find_scope`: it checks these.
    """


@dataclass(frozen=True, slots=True)
class AuditedTarget:
    """What a target of the audit log is called now; `within` is the id of what it is part of, if it is."""

    name: str
    within: str | None = None


@hookspec.all_now
def name_audited_targets(
    platform: Platform, session: Session, scope: Scope, target_type: str, target_ids: Sequence[str]
) -> Mapping[str, AuditedTarget] | None:
    """The names of a plugin's things that the audit log mentions, by id: only of those that the scope sees.

    Names are looked up when the log is read, as an entry outlives what it is about.
    """


@hookspec.first(seconds=PROMPTLY)
def find_audited_organizations(
    platform: Platform, principal: Principal, organization_id: int | None
) -> Sequence[int] | None:
    """The organizations whose audit entries the caller may read: those that it manages, and all below them.

    With `organization_id`, only that one and those below it; also for a Platform Admin, who can read all.
    """


@hookspec.all_now
def on_account_event(
    platform: Platform, unit: Unit, account: Account, change: AccountChange, origin: Origin
) -> None:
    """An account changes inside `unit`; raise a Conflict to forbid it. `origin` is for the audit log.

    `promoted` and `demoted` are about the instance role, `regrouped` about the groups of the sign-in. Runs in
    the same transaction, after the change. When an account is `deleted`, this is the last time that it has
    its name, e-mail address and subject at the identity provider: remove what is stored under these here, and
    everything else in `on_account_deleted`.
    """


@hookspec.all_now
def hand_over_shared(
    platform: Platform, unit: Unit, account: Account, heir: Scope | None
) -> Sequence[SharedThing] | None:
    """What an account that is being deleted owns and others use. Called inside the unit that deletes it.

    If there is an `heir`, make it the owner of whatever it may own. Return what is left: the deletion is then
    refused, and the error lists it. ``hand_over_owned`` does this for a table of `Owned` rows. What is
    neither returned nor handed over is removed by `on_account_deleted`.
    """


@hookspec.notification(seconds=300)
def on_account_deleted(platform: Platform, account_id: int) -> None:
    """Remove everything that belongs to a deleted account. Its id is never used again.

    Called by a worker, in a durable job, until it succeeds, even if the plugin was disabled or not installed
    at the time; and again on a later night, for anything that a request still running at the time has stored.
    So it must be idempotent; delete large amounts in several units. An implementation that fails, or takes
    more than five minutes, is named in the job and called again; other plugins are not affected. Records that
    must stay, such as orders, keep only the id, not the name.
    """
