"""Recommends plugins to go with given ones: what accounts with these have, and what these suggest."""

from __future__ import annotations

from collections.abc import Sequence

from builtin_plugins.plugin_registry import api as plugin_registry
from kernel.sdk import Caller

from ..index import Index
from ..live import GRAPH
from ..schemas import Recommendation, Recommendations

_SUGGESTED = 0.5
_CANDIDATES = 200


async def recommend(caller: Caller, plugins: Sequence[str], limit: int) -> Recommendations:
    """The best match first; deterministic.

    The score is the share of accounts that also have the plugin, plus 0.5 for each plugin that suggests it.
    Plugins that conflict with any of them are left out.
    """
    platform = caller.platform
    index = await platform.resource(GRAPH).index()
    installed = list(dict.fromkeys(plugins))

    together = await platform.database.read(
        lambda session: platform.hooks.ask_now(
            plugin_registry.find_installed_together,
            platform=platform,
            session=session,
            plugins=installed,
            limit=_CANDIDATES,
        )
    )
    candidates = {pair.plugin_id: _from_installs(pair) for pair in together or ()}
    for plugin in installed:
        _add_suggested(index, candidates, plugin)
    barred = {conflict.plugin_id for plugin in installed for conflict in index.conflicts(plugin)} | set(
        installed
    )
    best = [candidate for candidate in candidates.values() if candidate.plugin_id not in barred]
    best.sort(key=lambda candidate: (-candidate.score, candidate.name, candidate.plugin_id))
    return Recommendations(installed_plugins=installed, recommendations=best[:limit], count=len(best[:limit]))


def _from_installs(plugin: plugin_registry.InstalledTogether) -> Recommendation:
    score = plugin.accounts / plugin.of if plugin.of else 0.0
    reason = f"{plugin.accounts} of {plugin.of} accounts with these plugins have it"
    return Recommendation(plugin_id=plugin.plugin_id, name=plugin.name, score=round(score, 4), reason=reason)


def _add_suggested(index: Index, recommendations: dict[str, Recommendation], plugin: str) -> None:
    for link in index.links(plugin):
        if link.kind != "suggests" or link.target_type != "plugin":
            continue
        if index.has_catalog and link.target not in index.catalog:
            continue
        text = f"{index.name(plugin)} suggests it"
        existing = recommendations.get(link.target)
        if existing is None:
            recommendations[link.target] = Recommendation(
                plugin_id=link.target, name=index.name(link.target), score=_SUGGESTED, reason=text
            )
        else:
            existing.score = round(existing.score + _SUGGESTED, 4)
            existing.reason = f"{existing.reason}; {text}"
