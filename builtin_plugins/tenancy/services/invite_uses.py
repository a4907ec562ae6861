"""For whom an invite is used up: it admits an account once, and none that was removed after it was sent.

Else whoever was removed would come back by a link that is still good for others.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, exists, literal, select

from builtin_plugins.tenancy.errors import InviteClosed
from builtin_plugins.tenancy.models import Invite, InviteUse
from builtin_plugins.tenancy.services.invite_offers import Offer, invites_to
from builtin_plugins.tenancy.services.invites import ACCEPTED, has_status
from kernel.sdk import Account, Unit, utc_now


async def spend(unit: Unit, invite: Invite, user_id: int) -> None:
    """Use an invite up for an account, which costs it one use; the caller holds the lock.

    Raises InviteClosed.
    """
    if await unit.session.get(InviteUse, (invite.id, user_id)) is not None:
        raise InviteClosed()
    unit.session.add(InviteUse(invite_id=invite.id, user_id=user_id))
    invite.use_count += 1
    if invite.use_count >= invite.max_uses:
        invite.status = ACCEPTED


async def shut_out(unit: Unit, offer: Offer, user_id: int) -> None:
    """Close all pending invites to a team or an organization to an account; the caller holds the lock."""
    known = exists().where(InviteUse.invite_id == Invite.id, InviteUse.user_id == user_id)
    pending = has_status("pending", utc_now())
    closing = select(Invite.id, literal(user_id)).where(invites_to(offer), pending, ~known)
    table = InviteUse.__table__
    await unit.session.execute(table.insert().from_select(["invite_id", "user_id"], closing))


def is_closed_to_addressee() -> ColumnElement[bool]:
    """The predicate for invites that no more admit the account with their address."""
    return exists().where(
        InviteUse.invite_id == Invite.id,
        InviteUse.user_id == Account.id,
        Account.email_key == Invite.email_key,
    )
