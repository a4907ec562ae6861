"""What other plugins add to the bundles of teams and organizations, and sharing with people."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from kernel.sdk import hookspec

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from kernel.sdk import Platform, Unit


ImportPolicy = Literal["skip", "rename", "fail"]


ImportOutcome = Literal["created", "skipped", "renamed", "failed", "collision"]


@dataclass(frozen=True, slots=True)
class ImportedRow:
    """What happened to a row of a bundle (`import_rows`). `kind` is its type, such as ``pipeline``."""

    outcome: ImportOutcome
    kind: str
    name: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """The sections of a bundle that a plugin takes, and the plain function that writes them.

    `write` returns, by section, one outcome for each row, in the same order.
    """

    sections: Sequence[str]
    write: Callable[[Unit], Mapping[str, Sequence[ImportedRow]]]


@hookspec.all_now
def export_rows(
    platform: Platform, session: Session, team_id: int | None, organization_id: int | None
) -> Mapping[str, Sequence[Mapping[str, Any]]] | None:
    """What a plugin adds to the bundle of a team or of an organization (one of the ids is set).

    Returns rows by section, such as ``{"knowledge_bases": [{"name": …}]}``: rows that are shared with exactly
    that team or organization, as plain JSON values. No ids, owners, secrets or large payloads; a row refers
    to another by its name, which is unique within its section. A plain function, called in one snapshot of
    the database, for a caller who is allowed to export.
    """


@hookspec.all
def import_rows(
    platform: Platform,
    sections: Mapping[str, Any],
    team_id: int | None,
    organization_id: int | None,
    owner_id: int,
    policy: ImportPolicy,
) -> ImportPlan | None:
    """Check the sections of a bundle that the plugin knows, and return a plan for writing them.

    Called before the transaction; nothing is written yet. `sections` is everything in the bundle besides
    tenancy's own part: unchecked JSON values. Raise Unprocessable for rows that do not fit (unknown fields,
    too many, names twice). The plan's `write` is called once with the unit of work, stamps new rows to the
    team or organization and to `owner_id`, and changes and removes no existing rows.

    `policy` says what happens to a row whose name is taken: ``skip`` keeps the existing one,
    ``rename`` makes the new one under another name, ``fail`` reports a ``collision``, which ends the import.
    A section that no plugin takes is refused.
    """


@hookspec.first_now
def settle_people(platform: Platform, unit: Unit, owner_id: int, people: Sequence[str]) -> int | None:
    """The id of a team of exactly this owner and these people, named by username or proven e-mail address.

    The same people are the same team, which is in no list and never changes. For the `team_id` of an `Owned`
    row with the visibility ``team``. Raises Unprocessable for an entry of ``body.people`` that no active
    account has.
    """
