"""What evaluation asks of the plugins that store rated answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kernel.sdk import hookspec

if TYPE_CHECKING:
    from builtin_plugins.conversations.api import RecordedTurn
    from kernel.sdk import Caller


@hookspec.all(failing="skip")
def list_rated_turns(
    caller: Caller, pipeline_ids: Sequence[str], limit: int
) -> Sequence[RecordedTurn] | None:
    """The latest turns with these pipelines that somebody rated, as far as the caller may read them."""
