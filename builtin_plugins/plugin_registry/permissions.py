"""Permission keys of the plugin registry."""

from __future__ import annotations

from kernel.sdk import Permission

# Spec 4.7 opens both to every signed-in account; roles may be stricter.
CONFIG_READ = Permission(
    "plugin_registry.config.read", "See the configuration of plugins, secrets masked.", granted_to="user"
)
CONFIG_WRITE = Permission(
    "plugin_registry.config.write", "Change the configuration of running plugins.", granted_to="user"
)
