"""Has a default that its own setting refuses."""

from typing import ClassVar

from pydantic import Field

from kernel.sdk import Plugin, Settings, hookimpl


class WrongSettings(Settings):
    env_prefix: ClassVar[str] = "WRONG_"

    size: int = Field(0, ge=1, description="A size.")


class Wrong(Plugin):
    name = "wrong_setting"

    @hookimpl
    def register_settings(self) -> type[Settings]:
        return WrongSettings
