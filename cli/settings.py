"""What the command line itself can be told."""

from __future__ import annotations

from pydantic import Field

from kernel.settings import Settings


class CliSettings(Settings):
    """Read from the environment and from the section `cli` of `config.yaml`."""

    debug: bool = Field(False, description="Tracebacks and the platform's log lines for every command.")
    command: str = Field("platformctl", description="How help texts call the command line.")
