"""Jobs that people can follow and cancel, scheduled jobs, notices that wake listeners."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernel.db.base import UtcDateTime

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_INDEXES = {
    "ix_kernel_job_finished_at": ["finished_at"],
    "ix_kernel_job_owner_id_created_at": ["owner_id", "created_at"],
    "ix_kernel_job_name_subject": ["name", "subject"],
}
# Per statement, not per row: one notification for all notices of a unit, sent with the commit.
_WAKE = """
CREATE FUNCTION kernel_wake() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('kernel_notice', '');
    RETURN NULL;
END
$$
"""
_ON_NOTICE = """
CREATE TRIGGER kernel_wake AFTER INSERT ON kernel_notice
FOR EACH STATEMENT EXECUTE FUNCTION kernel_wake()
"""


def upgrade() -> None:
    with op.batch_alter_table("kernel_job", schema=None) as batch_op:
        for column in _columns():
            batch_op.add_column(column)
        for name, columns in _INDEXES.items():
            batch_op.create_index(name, columns, unique=False)
    op.create_table(
        "kernel_schedule",
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("cron", sa.String(length=128), nullable=False),
        sa.Column("next_at", UtcDateTime(), nullable=False),
        sa.Column("last_at", UtcDateTime(), nullable=True),
        sa.Column("job_id", sa.String(length=64), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_kernel_schedule")),
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute(_WAKE)
        op.execute(_ON_NOTICE)


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP TRIGGER kernel_wake ON kernel_notice")
        op.execute("DROP FUNCTION kernel_wake()")
    op.drop_table("kernel_schedule")
    with op.batch_alter_table("kernel_job", schema=None) as batch_op:
        for name in _INDEXES:
            batch_op.drop_index(name)
        for column in _columns():
            batch_op.drop_column(column.name)


def _columns() -> list[sa.Column[object]]:
    """New columns; the defaults are for existing rows."""
    return [
        sa.Column("lane", sa.String(length=16), nullable=False, server_default="standard"),
        sa.Column("faults", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("title", sa.String(length=128), nullable=True),
        sa.Column("owner_id", sa.Integer(), nullable=True),
        sa.Column("subject", sa.String(length=64), nullable=True),
        sa.Column("done", sa.BigInteger(), nullable=False, server_default="0"),
        sa.Column("done_before", sa.BigInteger(), nullable=False, server_default="0"),
        sa.Column("total", sa.BigInteger(), nullable=True),
        sa.Column("unit", sa.String(length=32), nullable=False, server_default=""),
        sa.Column("message", sa.Text(), nullable=False, server_default=""),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("progress_at", UtcDateTime(), nullable=True),
        sa.Column("cancel_requested_at", UtcDateTime(), nullable=True),
    ]
