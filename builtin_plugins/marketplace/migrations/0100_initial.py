"""The tables of 0.1.0."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernel.sdk import UtcDateTime, json_type

revision = "0100"
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
        sa.Column("self_listed", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("developer_id", sa.String(length=36), nullable=True),
        sa.Column("category_id", sa.String(length=36), nullable=True),
        sa.Column("submitted_by", sa.String(length=255), nullable=True),
        sa.Column("reviewed_by", sa.String(length=255), nullable=True),
        sa.Column("review_notes", sa.Text(), nullable=True),
        sa.Column("checks", json_type(), nullable=True),
        sa.Column("wheel", json_type(), nullable=True),
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
    op.create_index(op.f("ix_marketplace_listing_category_id"), "marketplace_listing", ["category_id"])
    op.create_index(
        "ix_marketplace_listing_status_created_at", "marketplace_listing", ["status", "created_at", "number"]
    )
    op.create_index(
        "ix_marketplace_listing_status_name_key",
        "marketplace_listing",
        ["status", "name_key"],
        unique=False,
        postgresql_ops={"name_key": "text_pattern_ops"},
    )
    op.create_index(
        "ix_marketplace_listing_submitted_by", "marketplace_listing", ["submitted_by", "updated_at"]
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
    op.create_index(op.f("ix_marketplace_installation_plugin_id"), "marketplace_installation", ["plugin_id"])
    op.create_table(
        "marketplace_installed_plugin",
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("plugin_id", sa.String(length=36), nullable=False),
        sa.ForeignKeyConstraint(
            ["plugin_id"],
            ["marketplace_listing.id"],
            name=op.f("fk_marketplace_installed_plugin_plugin_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_marketplace_installed_plugin")),
    )
    op.create_index(
        op.f("ix_marketplace_installed_plugin_plugin_id"), "marketplace_installed_plugin", ["plugin_id"]
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
    op.create_index(op.f("ix_marketplace_name_gram_number"), "marketplace_name_gram", ["number"])
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
    op.create_index(
        "ix_marketplace_rating_plugin_id_created_at", "marketplace_rating", ["plugin_id", "created_at"]
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
    op.create_index(
        "ix_marketplace_tool_listed",
        "marketplace_tool",
        ["plugin_id", "tool_name", "active", "required_tier"],
    )
    op.create_index(op.f("ix_marketplace_tool_tool_name"), "marketplace_tool", ["tool_name"])
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
    op.create_index(op.f("ix_marketplace_transition_plugin_id"), "marketplace_transition", ["plugin_id"])
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
        # Without a list of pending entries, which each search would scan.
        op.execute(
            "CREATE INDEX ix_marketplace_search_document ON marketplace_search USING gin (document) "
            "WITH (fastupdate = off)"
        )
