"""Plugins with actions, settings and checks, for tests of the registry."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, Field, SecretStr

from kernel.sdk import (
    AUTHENTICATED,
    PUBLIC,
    Action,
    BadRequest,
    Context,
    HealthCheck,
    Permission,
    Platform,
    Plugin,
    RouteTable,
    Settings,
    Unhealthy,
    hookimpl,
)


class ShopSettings(Settings):
    """Settings of every type; `folder` is not for clients."""

    env_prefix: ClassVar[str] = "SHOP_"
    configurable: ClassVar[frozenset[str]] = frozenset(
        {"greeting", "limit", "ratio", "loud", "mode", "key", "nickname"}
    )
    administered: ClassVar[frozenset[str]] = frozenset({"shelves", "hours", "width"})

    greeting: str = Field("hello", min_length=2, description="What to say.")
    limit: int = Field(3, ge=1, le=9, description="How many.")
    ratio: float = Field(0.5, description="How much.")
    loud: bool = Field(False, description="Whether to shout.")
    mode: Literal["slow", "quick"] = Field("slow", description="How fast.")
    key: SecretStr | None = Field(None, description="A key of the shop's supplier.")
    nickname: str | None = Field(None, description="Another name.")
    folder: str = Field("/srv", description="Where things lie.")
    shelves: int = Field(5, ge=1, description="How many shelves there may be.")
    hours: int = Field(8, ge=1, description="How long it is open.")
    width: float = Field(2, ge=-1, description="How wide a shelf is.")


class Size(Enum):
    """A size."""

    SMALL = "small"
    LARGE = "large"


class Box(BaseModel):
    """What things are put into."""

    size: Size = Size.SMALL
    inside: Box | None = None


class FindParameters(BaseModel):
    """What to find."""

    word: str = Field(min_length=2, description="A word.")
    limit: int = Field(5, ge=1, le=10)
    tags: list[str] = Field(default_factory=list)
    box: Box | None = None


class NoParameters(BaseModel):
    """Nothing."""


async def find(ctx: Context, parameters: FindParameters) -> dict[str, Any]:
    return {
        "word": parameters.word,
        "limit": parameters.limit,
        "tags": parameters.tags,
        "caller": ctx.principal.username,
    }


async def restock(_ctx: Context, _wanted: NoParameters) -> FindParameters:
    return FindParameters(word="restocked")


async def complain(_ctx: Context, _wanted: NoParameters) -> None:
    raise BadRequest("the shop is closed on Sundays")


async def crash(_ctx: Context, _wanted: NoParameters) -> None:
    raise ValueError("password=hunter2")


routes = RouteTable("Shop")


@routes.get("/v1/shop/greeting", access=PUBLIC, returns=dict[str, Any])
async def greeting(ctx: Context) -> dict[str, Any]:
    """The settings that are in effect."""
    settings = ctx.settings_of(ShopSettings)
    key = settings.key.get_secret_value() if settings.key else None
    return {"greeting": settings.greeting, "limit": settings.limit, "loud": settings.loud, "key": key}


class Shop(Plugin):
    """Has everything that the registry shows."""

    name = "shop"
    version = "1.2.3"
    description = "Sells things"
    author = "Ayşe"
    capabilities = ("selling",)
    data_sources = ("shelf",)
    databases = ("ledger",)

    def __init__(self) -> None:
        self.complaint: str | None = None

    @hookimpl
    def register_settings(self) -> type[ShopSettings]:
        return ShopSettings

    @hookimpl
    def register_routes(self) -> Sequence[RouteTable]:
        return [routes]

    @hookimpl
    def register_permissions(self) -> Sequence[Permission]:
        return []

    @hookimpl
    def register_actions(self) -> Sequence[Action]:
        return [
            Action("find", "Finds a thing.", FindParameters, find, access=PUBLIC, read_only=True),
            Action("restock", "Buys things.", NoParameters, restock, access=AUTHENTICATED),
            Action("complain", "Always refuses.", NoParameters, complain, access=PUBLIC, read_only=True),
            Action("crash", "Always fails.", NoParameters, crash, access=PUBLIC, read_only=True),
        ]

    @hookimpl
    def register_health_checks(self) -> Sequence[HealthCheck]:
        return [HealthCheck("shelf", self._check)]

    async def _check(self, _platform: Platform) -> None:
        if self.complaint:
            raise Unhealthy(self.complaint)


class Customer(Plugin):
    """Needs the shop."""

    name = "customer"
    requires = ("shop",)
