"""Settings for operators: the values in effect and where they come from, without secrets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from kernel.observe.logs import mask
from kernel.plugins.plugin_settings import PLUGIN_SETTINGS
from kernel.settings.loading import KernelSettings, Settings, SettingsLoader, Source

if TYPE_CHECKING:
    from kernel.platform import Platform


@dataclass(frozen=True)
class ShownSetting:
    """A field of a settings class; texts are empty if nothing is set, and `***` for a secret."""

    owner: str
    name: str
    variables: tuple[str, ...]
    default: str
    value: str
    source: Source
    description: str
    secret: bool
    changeable: bool


def settings_in_effect(platform: Platform) -> Iterator[ShownSetting]:
    """The kernel's settings and those of the plugins in service, as this process uses them."""
    plugins = platform.resource(PLUGIN_SETTINGS)
    yield from show_settings("kernel", platform.settings, plugins.loader.sources("kernel", KernelSettings))
    for plugin, cls in plugins.classes().items():
        yield from show_settings(plugin, plugins.of(cls), plugins.sources(plugin))


def show_loaded(loader: SettingsLoader, owner: str, cls: type[Settings]) -> Iterator[ShownSetting]:
    """The settings of a class, read by a loader."""
    return show_settings(owner, loader.load(owner, cls), loader.sources(owner, cls))


def show_settings(owner: str, values: Settings, sources: Mapping[str, Source]) -> Iterator[ShownSetting]:
    """Each field of these settings."""
    for name, variables in values.env_names().items():
        field, value = type(values).model_fields[name], getattr(values, name)
        yield ShownSetting(
            owner=owner,
            name=name,
            variables=variables,
            default=_text(field.default),
            value=_text(value),
            source=sources.get(name, "default"),
            description=field.description or "",
            secret="SecretStr" in str(field.annotation),
            changeable=name in values.configurable
            or (name in values.administered and sources.get(name) != "environment"),
        )


def _text(value: Any) -> str:
    """The value as an operator would write it; a secret stays hidden."""
    if value is None or value == "":
        return ""
    if isinstance(value, SecretStr):
        return "***"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else mask(str(value))
