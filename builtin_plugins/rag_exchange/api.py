"""What other plugins add to the file of a knowledge base, and read from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kernel.sdk import hookspec

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from kernel.sdk import Platform, Unit


@hookspec.all_now
def export_derived(platform: Platform, session: Session, knowledge_base_id: str) -> Mapping[str, Any] | None:
    """The plugin's data about a knowledge base that is being exported, as JSON under the plugin's name.

    It may name documents and passages by their ids. Leave out what is derived from documents, and secrets.
    """


@hookspec.all_now
def import_derived(
    platform: Platform,
    unit: Unit,
    knowledge_base_id: str,
    parts: Mapping[str, Any],
    renamed: Mapping[str, str],
) -> None:
    """A knowledge base was imported: write what `parts` holds under the plugin's name, in this unit.

    `renamed` maps the file's ids of documents and passages to those here. The file may come from
    anybody: check everything, and raise Unprocessable for what is not valid.
    """
