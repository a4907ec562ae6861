"""Create the first tables, and the full-text index."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernel.sdk import UtcDateTime, json_type

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "marketplace_category",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("slug", sa.String(length=100), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_marketplace_category")),
        sa.UniqueConstraint("slug", name=op.f("uq_marketplace_category_slug")),
    )
    op.create_table(
        "marketplace_listing",
        sa.Column("number", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("name_key", sa.String(length=100), nullable=False),
        sa.Column("display_name", sa.String(length=200), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("author", sa.String(length=100), nullable=False),
        sa.Column("author_email", sa.String(length=320), nullable=True),
        sa.Column("repository_url", sa.String(length=2000), nullable=True),
        sa.Column("distribution_type", sa.String(length=16), nullable=False),
        sa.Column("docker_image", sa.String(length=500), nullable=True),
        sa.Column("package", sa.String(length=200), nullable=True),
        sa.Column("version_range", sa.String(length=200), nullable=True),
        sa.Column("current_version", sa.String(length=100), nullable=True),
        sa.Column("pricing_model", sa.String(length=16), nullable=False),
        sa.Column("base_tier", sa.String(length=16), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("featured", sa.Boolean(), nullable=False),
        sa.Column("download_count", sa.Integer(), nullable=False),
        sa.Column("rating_sum", sa.Integer(), nullable=False),
        sa.Column("rating_count", sa.Integer(), nullable=False),
        sa.Column("requires_services", json_type(), nullable=False),
        sa.Column("origin", sa.String(length=16), nullable=False),
        sa.Column("developer_id", sa.String(length=36), nullable=True),
        sa.Column("category_id", sa.String(length=36), nullable=True),
        sa.Column("submitted_by", sa.String(length=255), nullable=True),
        sa.Column("reviewed_by", sa.String(length=255), nullable=True),
        sa.Column("review_notes", sa.Text(), nullable=True),
        sa.Column("checks", json_type(), nullable=True),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.Column("submitted_at", UtcDateTime(), nullable=True),
        sa.Column("published_at", UtcDateTime(), nullable=True),
        sa.ForeignKeyConstraint(
            ["category_id"],
            ["marketplace_category.id"],
            name=op.f("fk_marketplace_listing_category_id"),
            ondelete="SET NULL",
        ),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_marketplace_listing")),
        sa.UniqueConstraint("id", name=op.f("uq_marketplace_listing_id")),
        sa.UniqueConstraint("name_key", name=op.f("uq_marketplace_listing_name_key")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("marketplace_listing", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_marketplace_listing_category_id"), ["category_id"], unique=False)
        batch_op.create_index(
            "ix_marketplace_listing_status_created_at", ["status", "created_at", "number"], unique=False
        )
        batch_op.create_index(
            "ix_marketplace_listing_submitted_by", ["submitted_by", "updated_at"], unique=False
        )

    op.create_table(
        "marketplace_installation",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=False),
        sa.Column("plugin_id", sa.String(length=36), nullable=False),
        sa.Column("version", sa.String(length=100), nullable=True),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("installed_at", UtcDateTime(), nullable=False),
        sa.Column("last_updated_at", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["plugin_id"],
            ["marketplace_listing.id"],
            name=op.f("fk_marketplace_installation_plugin_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_marketplace_installation")),
        sa.UniqueConstraint(
            "user_id", "plugin_id", name=op.f("uq_marketplace_installation_user_id_plugin_id")
        ),
    )
    with op.batch_alter_table("marketplace_installation", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_marketplace_installation_plugin_id"), ["plugin_id"], unique=False
        )

    op.create_table(
        "marketplace_name_gram",
        sa.Column("gram", sa.String(length=3), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["number"],
            ["marketplace_listing.number"],
            name=op.f("fk_marketplace_name_gram_number"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("gram", "number", name=op.f("pk_marketplace_name_gram")),
    )
    with op.batch_alter_table("marketplace_name_gram", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_marketplace_name_gram_number"), ["number"], unique=False)

    op.create_table(
        "marketplace_rating",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("plugin_id", sa.String(length=36), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=False),
        sa.Column("username", sa.String(length=255), nullable=False),
        sa.Column("rating", sa.Integer(), nullable=False),
        sa.Column("review_text", sa.Text(), nullable=True),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["plugin_id"],
            ["marketplace_listing.id"],
            name=op.f("fk_marketplace_rating_plugin_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_marketplace_rating")),
        sa.UniqueConstraint("plugin_id", "user_id", name=op.f("uq_marketplace_rating_plugin_id_user_id")),
    )
    with op.batch_alter_table("marketplace_rating", schema=None) as batch_op:
        batch_op.create_index(
            "ix_marketplace_rating_plugin_id_created_at", ["plugin_id", "created_at"], unique=False
        )

    op.create_table(
        "marketplace_tool",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("plugin_id", sa.String(length=36), nullable=False),
        sa.Column("tool_name", sa.String(length=200), nullable=False),
        sa.Column("type", sa.String(length=16), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("endpoint", sa.String(length=500), nullable=False),
        sa.Column("method", sa.String(length=8), nullable=False),
        sa.Column("parameters", json_type(), nullable=True),
        sa.Column("response_format", json_type(), nullable=True),
        sa.Column("required_tier", sa.String(length=16), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["plugin_id"],
            ["marketplace_listing.id"],
            name=op.f("fk_marketplace_tool_plugin_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_marketplace_tool")),
        sa.UniqueConstraint("plugin_id", "tool_name", name=op.f("uq_marketplace_tool_plugin_id_tool_name")),
    )
    with op.batch_alter_table("marketplace_tool", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_marketplace_tool_plugin_id"), ["plugin_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_marketplace_tool_tool_name"), ["tool_name"], unique=False)

    op.create_table(
        "marketplace_transition",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("plugin_id", sa.String(length=36), nullable=False),
        sa.Column("from_status", sa.String(length=16), nullable=False),
        sa.Column("to_status", sa.String(length=16), nullable=False),
        sa.Column("actor", sa.String(length=255), nullable=False),
        sa.Column("actor_role", sa.String(length=16), nullable=False),
        sa.Column("notes", sa.Text(), nullable=True),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["plugin_id"],
            ["marketplace_listing.id"],
            name=op.f("fk_marketplace_transition_plugin_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_marketplace_transition")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("marketplace_transition", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_marketplace_transition_plugin_id"), ["plugin_id"], unique=False)
    if op.get_bind().dialect.name == "sqlite":
        op.execute(
            "CREATE VIRTUAL TABLE marketplace_search USING fts5("
            "name, display_name, tools, description, tokenize='unicode61', prefix='1 2 3')"
        )
    else:
        op.execute(
            "CREATE TABLE marketplace_search (number INTEGER PRIMARY KEY REFERENCES "
            "marketplace_listing (number) ON DELETE CASCADE, document TSVECTOR NOT NULL)"
        )
        op.execute("CREATE INDEX ix_marketplace_search_document ON marketplace_search USING gin (document)")


def downgrade() -> None:
    op.execute("DROP TABLE marketplace_search")
    with op.batch_alter_table("marketplace_transition", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_marketplace_transition_plugin_id"))

    op.drop_table("marketplace_transition")
    with op.batch_alter_table("marketplace_tool", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_marketplace_tool_tool_name"))
        batch_op.drop_index(batch_op.f("ix_marketplace_tool_plugin_id"))

    op.drop_table("marketplace_tool")
    with op.batch_alter_table("marketplace_rating", schema=None) as batch_op:
        batch_op.drop_index("ix_marketplace_rating_plugin_id_created_at")

    op.drop_table("marketplace_rating")
    with op.batch_alter_table("marketplace_name_gram", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_marketplace_name_gram_number"))

    op.drop_table("marketplace_name_gram")
    with op.batch_alter_table("marketplace_installation", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_marketplace_installation_plugin_id"))

    op.drop_table("marketplace_installation")
    with op.batch_alter_table("marketplace_listing", schema=None) as batch_op:
        batch_op.drop_index("ix_marketplace_listing_submitted_by")
        batch_op.drop_index("ix_marketplace_listing_status_created_at")
        batch_op.drop_index(batch_op.f("ix_marketplace_listing_category_id"))

    op.drop_table("marketplace_listing")
    op.drop_table("marketplace_category")
