"""Uninstalling plugins with pip."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from cli import console
from cli.auditing import note_packages
from cli.failures import CommandFailed, Missing, Refused
from cli.package_needs import PLATFORM, left_without, read_needs, removal
from cli.pip import Pip, last_error
from kernel.plugins.loading import GROUP

if TYPE_CHECKING:
    from cli.plugin_facts import PluginFacts


def uninstall_plugin(name: str, plugins: Sequence[PluginFacts], *, force: bool) -> None:
    """Uninstall the package of plugin (or package) `name`. Raises Refused for what the platform needs."""
    packages = {point.name: point.dist.name for point in metadata.entry_points(group=GROUP) if point.dist}
    by_package = {canonicalize_name(package): package for package in packages.values()}
    package = packages.get(name) or by_package.get(canonicalize_name(name))
    if package is None:
        raise Missing(f"no plugin '{name}' is installed", f"Installed: {', '.join(sorted(packages))}.")
    if canonicalize_name(package) == PLATFORM:
        raise Refused(
            f"'{name}' is part of the platform",
            f"Set PLATFORM_PLUGINS_DISABLED={name} to turn it off at the next start.",
        )
    gone = {plugin for plugin, owner in packages.items() if owner == package}
    needed = sorted(p.name for p in plugins if p.name not in gone and gone & set(p.requires))
    if needed and not force:
        raise Refused(
            f"other plugins require it: {', '.join(needed)}", "Uninstall them first, or use --force."
        )
    left = left_without(canonicalize_name(package), read_needs())
    result = Pip().run("uninstall", "--yes", package)
    if result.returncode != 0:
        raise CommandFailed(f"pip could not uninstall {package}: {last_error(result)}")
    console.done(f"{package} is uninstalled ({', '.join(sorted(gone))}); its tables and data are kept")
    note_packages("plugin.uninstalled", dict.fromkeys(sorted(gone)))
    if left:
        console.note(
            f"Packages that only {package} needed are still installed: {', '.join(left)}. "
            f"To remove them: {removal(left)}"
        )
    console.note("Restart the platform to stop using the plugin.")
