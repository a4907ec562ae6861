"""Add a number for each state of a graph, so that stores can compare many at once."""

from __future__ import annotations

from hashlib import blake2b

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_AT_ONCE = 1_000
_GRAPH = sa.table("graph_rag_graph", sa.column("id"), sa.column("stamp"), sa.column("seal"))


def upgrade() -> None:
    made = sa.Column("seal", sa.BigInteger(), nullable=False, server_default=sa.text("0"))
    op.add_column("graph_rag_graph", made)
    rows = op.get_bind().execute(sa.select(_GRAPH.c.id, _GRAPH.c.stamp)).all()
    change = sa.update(_GRAPH).where(_GRAPH.c.id == sa.bindparam("of")).values(seal=sa.bindparam("made"))
    for at in range(0, len(rows), _AT_ONCE):
        values = [{"of": row.id, "made": _seal(row.stamp)} for row in rows[at : at + _AT_ONCE]]
        op.get_bind().execute(change, values)


def _seal(stamp: str) -> int:
    return int.from_bytes(blake2b(stamp.encode(), digest_size=5).digest())


def downgrade() -> None:
    op.drop_column("graph_rag_graph", "seal")
