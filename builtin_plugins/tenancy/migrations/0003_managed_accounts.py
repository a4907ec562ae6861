"""Record which accounts are managed by an organization.

Accounts that joined by an invite agreed to it; those added by a manager did not. The audit log tells which.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernel.sdk import UtcDateTime, json_type

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_MEMBERSHIP = sa.table(
    "tenancy_membership",
    sa.column("organization_id", sa.Integer()),
    sa.column("user_id", sa.Integer()),
    sa.column("joined_at", UtcDateTime()),
    sa.column("managed_since", UtcDateTime()),
)
_AUDIT = sa.table(
    "kernel_audit_entry",
    sa.column("id", sa.BigInteger()),
    sa.column("action", sa.String()),
    sa.column("target_id", sa.String()),
    sa.column("scope_org_id", sa.Integer()),
    sa.column("after_state", json_type()),
)


def upgrade() -> None:
    with op.batch_alter_table("tenancy_membership", schema=None) as batch_op:
        batch_op.add_column(sa.Column("managed_since", UtcDateTime(), nullable=True))
    connection = op.get_bind()
    for organization_id, user_id in _joined_by_invite(connection):
        mine = (_MEMBERSHIP.c.organization_id == organization_id, _MEMBERSHIP.c.user_id == user_id)
        since = _MEMBERSHIP.c.joined_at
        connection.execute(sa.update(_MEMBERSHIP).where(*mine).values(managed_since=since))


def _joined_by_invite(connection: sa.Connection) -> list[tuple[int, int]]:
    """The last time that each account became a member decides: it may have been removed and added again."""
    query = (
        sa.select(_AUDIT.c.scope_org_id, _AUDIT.c.target_id, _AUDIT.c.after_state)
        .where(_AUDIT.c.action == "organization.member_added", _AUDIT.c.scope_org_id.is_not(None))
        .order_by(_AUDIT.c.id)
    )
    last = {(row.scope_org_id, int(row.target_id)): row.after_state for row in connection.execute(query)}
    return [place for place, after in last.items() if after and after.get("invite_id") is not None]


def downgrade() -> None:
    with op.batch_alter_table("tenancy_membership", schema=None) as batch_op:
        batch_op.drop_column("managed_since")
