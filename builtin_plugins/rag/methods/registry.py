"""The methods by their names: the built-in ones and those of plugins."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from builtin_plugins.rag.methods.auto import Auto
from builtin_plugins.rag.methods.corrective import Corrective
from builtin_plugins.rag.methods.from_plugins import PluginMethod
from builtin_plugins.rag.methods.hyde import Hyde
from builtin_plugins.rag.methods.method import Method
from builtin_plugins.rag.methods.raptor import Raptor
from builtin_plugins.rag.methods.self_rag import SelfRag
from builtin_plugins.rag.methods.standard import Standard
from kernel.sdk import ResourceKey, Unprocessable, contracts

log = logging.getLogger("platform.rag.methods")


class Methods:
    """All methods of this server. Methods of a plugin are hidden while `in_service` says that it isn't."""

    def __init__(
        self,
        declared: Sequence[tuple[str, Sequence[contracts.QueryMethod]]],
        in_service: Callable[[str], bool],
    ) -> None:
        self._in_service = in_service
        standard, hyde, self_rag, corrective = Standard(), Hyde(), SelfRag(), Corrective()
        fixed = {method.name: method for method in (standard, hyde, self_rag, corrective, Raptor())}
        self._methods: dict[str, Method] = {**fixed, Auto.name: Auto(hyde, self_rag, fixed)}
        for plugin, methods in declared:
            for method in methods:
                if method.name in self._methods:
                    log.error("the method '%s' of '%s' is refused: the name is taken", method.name, plugin)
                else:
                    self._methods[method.name] = PluginMethod(plugin, method)

    @property
    def names(self) -> list[str]:
        return [name for name, method in self._methods.items() if self._serves(method)]

    def _serves(self, method: Method) -> bool:
        return not isinstance(method, PluginMethod) or self._in_service(method.plugin)

    def named(self, name: str) -> Method:
        """The method of this name, in lower case. Raises Unprocessable with the list of names."""
        found = self._methods.get(name)
        if found is None or not self._serves(found):
            message = f"must be one of {', '.join(self.names)}"
            raise Unprocessable.field(("body", "method"), message, name)
        return found


METHODS: ResourceKey[Methods] = ResourceKey("query methods")
