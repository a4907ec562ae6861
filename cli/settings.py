"""Settings of the command line itself."""

from __future__ import annotations

from pydantic import Field, SecretStr

from kernel.settings.loading import Settings


class CliSettings(Settings):
    """Read from the environment and from the section `cli` of `config.yaml`."""

    debug: bool = Field(False, description="Show tracebacks and log lines in every command.")
    command: str = Field("platformctl", description="Name of the command line in help texts.")
    api_url: str = Field(
        "http://127.0.0.1:8000",
        description="Address of the platform that commands call if nobody has signed in.",
    )
    api_token: SecretStr | None = Field(
        None, description="Personal access token with which commands sign in."
    )
