"""The route of the settings in effect."""

from __future__ import annotations

from pydantic import BaseModel, Field

from kernel.sdk import ADMIN, Context, RouteTable
from kernel.sdk.operations import ShownSetting, Source, settings_in_effect

routes = RouteTable("Settings")


class SettingOut(BaseModel):
    """A setting as this process uses it."""

    owner: str = Field(description="`kernel` or a plugin; its section in `config.yaml`.")
    name: str = Field(description="Its key in that section.")
    variables: list[str] = Field(description="The environment variables that set it, strongest first.")
    value: str = Field(description="As an operator would write it; `***` for a secret, empty if not set.")
    default: str
    source: Source = Field(
        description="Where the value comes from; `stored` by a plugin's configuration, `environment` also "
        "by an option of the command line."
    )
    secret: bool
    changeable: bool = Field(description="Whether `PUT /v1/plugins/{owner}/config` can change it.")
    description: str


class SettingList(BaseModel):
    """All settings: the kernel's, then those of each plugin in service."""

    settings: list[SettingOut]
    count: int


@routes.get("/v1/settings", access=ADMIN, returns=SettingList)
async def index(ctx: Context) -> SettingList:
    """List the settings in effect, with their source, and secrets masked.

    With several processes, those of the process that answers.
    """
    items = [_rendered(setting) for setting in settings_in_effect(ctx.platform)]
    return SettingList(settings=items, count=len(items))


def _rendered(setting: ShownSetting) -> SettingOut:
    return SettingOut(
        owner=setting.owner,
        name=setting.name,
        variables=list(setting.variables),
        value=setting.value,
        default=setting.default,
        source=setting.source,
        secret=setting.secret,
        changeable=setting.changeable,
        description=setting.description,
    )
