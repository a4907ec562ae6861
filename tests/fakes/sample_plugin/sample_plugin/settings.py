"""Settings of the plugin: ``BOOKMARKS_…`` in the environment, section ``bookmarks`` in config.yaml."""

from typing import ClassVar

from pydantic import Field

from kernel.sdk import Settings


class BookmarksSettings(Settings):
    """What an operator can tell the plugin."""

    env_prefix: ClassVar[str] = "BOOKMARKS_"

    limit: int = Field(1000, ge=1, description="Most bookmarks that are kept.")
