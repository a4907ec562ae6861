"""The settings of plugins: read at start, replaced as a whole when stored values change."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from kernel.errors import ANY_ERROR, StartupError
from kernel.plugins.resource_keys import ResourceKey
from kernel.plugins.states import PluginStates
from kernel.settings.checks import ExistingFolder, split_list
from kernel.settings.loading import KernelSettings, Settings, SettingsLoader, Source

log = logging.getLogger("platform")

S = TypeVar("S", bound=Settings)


def _refuse_variables_of_the_kernel(cls: type[Settings]) -> None:
    """Refuse the kernel's variables; sharing others, such as REDIS_URL, may be intended."""
    kernel_names = {name for names in KernelSettings.env_names().values() for name in names}
    for field, names in cls.env_names().items():
        for name in names:
            if name in kernel_names and name.startswith(Settings.env_prefix):
                raise StartupError(
                    f"its setting '{field}' is read from {name}, which is the kernel's; give {cls.__name__}"
                    " an env_prefix of its own"
                )


class PluginSettings:
    """The declared settings classes and the values in force."""

    def __init__(self, loader: SettingsLoader, states: PluginStates) -> None:
        self.loader = loader
        self._states = states
        self._values: dict[type[Settings], Settings] = {}
        self._classes: dict[str, type[Settings]] = {}
        self._stored: dict[str, frozenset[str]] = {}

    def of(self, cls: type[S]) -> S:
        """The values in force of a plugin's class."""
        return self._values[cls]  # type: ignore[return-value]

    def classes(self) -> Mapping[str, type[Settings]]:
        """The settings classes of the plugins in service, by plugin."""
        return self._classes

    def class_of(self, plugin: str) -> type[Settings] | None:
        """The settings class of a plugin in service; None if it has none."""
        return self._classes.get(plugin)

    def sources(self, plugin: str) -> dict[str, Source]:
        """Where a plugin's values come from, by field name; fields with their default value are left out."""
        sources = self.loader.sources(plugin, self._classes[plugin])
        return {**sources, **dict.fromkeys(self._stored.get(plugin, ()), "stored")}

    def load(self, declared: Iterable[tuple[str, type[Settings]]]) -> None:
        """Read each plugin's settings; a wrong one refuses its plugin."""
        for plugin, cls in declared:
            try:
                _refuse_variables_of_the_kernel(cls)
                self._values[cls] = self.read(plugin, cls, {})
                self._classes[plugin] = cls
            except StartupError as error:
                self._states.fail(plugin, str(error))

    def warn(self, disabled: str) -> None:
        """Log settings that nothing reads, and folders that don't exist; `disabled` is the list of disabled
        plugins.
        """
        for sentence in (*self.unread(disabled), *self.absent_folders()):
            log.warning("%s", sentence)

    def unread(self, disabled: str, ignore: tuple[str, ...] = ()) -> Iterator[str]:
        """One sentence for each variable, section and disabled plugin that nothing knows."""
        others = ("PLATFORM_SECRET_", "PLATFORM_VERSION")  # secrets, and the image that compose.yaml names
        yield from self.loader.unknown_variables(ignore=(*others, *ignore))
        yield from self.loader.unknown_sections({"kernel", *self._states.records})
        for name in sorted(set(split_list(disabled)) - self._states.records.keys()):
            yield f"PLATFORM_PLUGINS_DISABLED: no plugin is called '{name}'"

    def absent_folders(self) -> Iterator[str]:
        """One sentence for each setting that names a folder (`ExistingFolder`) that isn't there."""
        for cls in self._classes.values():
            names = cls.env_names()
            for name, field in cls.model_fields.items():
                folder = getattr(self._values[cls], name)
                if ExistingFolder() in field.metadata and folder is not None and not folder.is_dir():
                    yield f"{' or '.join(names[name])}: there is no folder {folder}"

    def read(self, plugin: str, cls: type[S], stored: Mapping[str, Any]) -> S:
        """The settings, with `stored` values (by field name) over the environment.

        Raises StartupError for an invalid value.
        """
        try:
            return self.loader.load(plugin, cls, stored)
        except StartupError:
            raise
        except ANY_ERROR as error:  # boundary: another author's validators
            log.exception("plugin %s: its settings can't be read", plugin)
            raise StartupError(
                f"reading its settings raised {type(error).__name__}; see the log. To refuse a value, a"
                f" validator of {cls.__name__} must raise ValueError"
            ) from None

    def apply(self, plugin: str, stored: Mapping[str, Any]) -> None:
        """Put `stored` values in force. Raises StartupError, changing nothing, for an invalid one."""
        cls = self._classes[plugin]
        self._values[cls] = self.read(plugin, cls, stored)
        self._stored[plugin] = frozenset(stored)


PLUGIN_SETTINGS: ResourceKey[PluginSettings] = ResourceKey("plugin_settings")
