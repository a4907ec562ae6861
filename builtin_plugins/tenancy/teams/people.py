"""Sharing with people: an unlisted team of exactly these accounts, which never changes.

Whatever is shared with the same people has the same team. Who is added or taken away later belongs to
another team, so that a change for one thing changes nothing for others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from sqlalchemy import insert, select

from builtin_plugins.accounts.api import verified_addresses
from builtin_plugins.tenancy.access.cache import changed
from builtin_plugins.tenancy.models import Team, TeamMember
from kernel.sdk import Account, Unit, Unprocessable, utc_now
from kernel.sdk.storage import insert_new

_KEY = " people {}"  # the name of no other team begins with a space
_UNKNOWN = "no active account has this name, or has proven that it has this e-mail address"


def settle_people(unit: Unit, owner_id: int, people: Sequence[str]) -> int:
    """The id of the unlisted team of an account and the people that are given by username or proven e-mail
    address. Raises Unprocessable for an entry that no active account has.
    """
    ids = sorted({owner_id, *_ids_of(unit, people)})
    name_key = _KEY.format(hashlib.sha256(",".join(map(str, ids)).encode()).hexdigest())
    query = select(Team.id).where(Team.name_key == name_key)
    existing_id: int | None = unit.session.scalar(query)
    if existing_id is not None:
        return existing_id
    connection = unit.session.connection()
    row = {"name": "", "name_key": name_key, "description": "", "unlisted": True, "created_at": utc_now()}
    result = connection.execute(insert_new(Team, is_sqlite=connection.dialect.name == "sqlite"), row)
    team_id: int = unit.session.scalars(query).one()
    if result.rowcount:
        members = [{"team_id": team_id, "user_id": user_id, "team_role": "member"} for user_id in ids]
        connection.execute(insert(TeamMember), members)
        changed(unit, ids)
    return team_id


def _ids_of(unit: Unit, people: Sequence[str]) -> list[int]:
    keys = [one.strip().casefold() for one in people]
    named = select(Account.id, Account.username_key).where(Account.username_key.in_(keys), Account.is_active)
    ids = {name: account for account, name in unit.session.execute(named)}
    proven = verified_addresses().where(Account.email_key.in_(keys))  # whoever registers may enter any
    ids |= {address: account for account, address in unit.session.execute(proven)}
    for place, key in enumerate(keys):
        if key not in ids:
            raise Unprocessable.field(("body", "people", place), _UNKNOWN, people[place])
    return [ids[key] for key in keys]
