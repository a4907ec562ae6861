"""Settings of the plugin."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from kernel.sdk import Settings


class OpenAIFilesSettings(Settings):
    """How much may be uploaded as files, and how many go into a vector store at once."""

    administered: ClassVar[frozenset[str]] = frozenset(
        {
            "openai_files_file_mb",
            "openai_files_account_mb",
            "openai_files_at_once",
        }
    )

    openai_files_file_mb: int = Field(
        100, ge=1, le=10_000, description="Most MB of one file uploaded by OpenAI's protocol."
    )
    openai_files_account_mb: int = Field(
        2000,
        ge=0,
        description="Most MB of such files of one account; 0 is no limit. Documents are counted separately.",
    )
    openai_files_at_once: int = Field(
        500, ge=1, le=2000, description="Most files that one request may put into a vector store."
    )
