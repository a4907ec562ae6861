"""Which accounts can't use an invite: those that have used it, or were removed after it was sent.

Otherwise a removed account could come back through a link that still works for others.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, exists, literal, select

from builtin_plugins.tenancy.errors import InviteClosed
from builtin_plugins.tenancy.invites.offers import Offer, invites_to
from builtin_plugins.tenancy.invites.records import ACCEPTED, has_status
from builtin_plugins.tenancy.models import Invite, InviteUse
from kernel.sdk import Account, Unit


def spend(unit: Unit, invite: Invite, user_id: int) -> None:
    """Count one use of an invite, by an account that can't use it again; the caller holds the lock.

    Raises InviteClosed.
    """
    if unit.session.get(InviteUse, (invite.id, user_id)) is not None:
        raise InviteClosed()
    unit.session.add(InviteUse(invite_id=invite.id, user_id=user_id))
    invite.use_count += 1
    if invite.use_count >= invite.max_uses:
        invite.status = ACCEPTED


def shut_out(unit: Unit, offer: Offer, user_id: int) -> None:
    """Close all pending invites to a team or an organization for an account; the caller holds the lock."""
    is_used = exists().where(InviteUse.invite_id == Invite.id, InviteUse.user_id == user_id)
    pending = has_status("pending", unit.now())
    closing = select(Invite.id, literal(user_id)).where(invites_to(offer), pending, ~is_used)
    table = InviteUse.__table__
    unit.session.execute(table.insert().from_select(["invite_id", "user_id"], closing))


def is_closed_to_addressee() -> ColumnElement[bool]:
    """The predicate for invites that the account with their address can no longer use."""
    return exists().where(
        InviteUse.invite_id == Invite.id,
        InviteUse.user_id == Account.id,
        Account.email_key == Invite.email_key,
    )
