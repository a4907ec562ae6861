"""The graph in memory, and what follows from it: closure, verdict, explanations, conflicts.

Resolution is a breadth-first walk: the first path to a plugin is a shortest one, which serves as the
explanation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from .schemas import ConflictOut, Dependency, Resolution, Verdict

DEEPEST = 20
_MOST_FAILURES = 50


class PluginEdge(NamedTuple):
    """An edge: source, target, kind and version constraint."""

    source: str
    target: str
    kind: str
    target_type: str
    constraint: str | None


@dataclass(frozen=True, slots=True)
class CatalogPlugin:
    """The catalog's data on a plugin."""

    name: str
    version: str | None


class Index:
    """Edges by their ends, and the catalog's data on plugins. One for each process."""

    def __init__(self) -> None:
        self._out: dict[str, tuple[PluginEdge, ...]] = {}
        self._in: dict[str, dict[PluginEdge, None]] = {}
        self.catalog: dict[str, CatalogPlugin] = {}
        self.names: dict[str, str] = {}
        self.has_catalog = False
        self._fits: dict[tuple[str, str], bool] = {}

    def put_all(self, links: Mapping[str, Iterable[PluginEdge]], names: Mapping[str, str]) -> None:
        """Replace the edges of these plugins, and note the names stored with them."""
        for source, edges in links.items():
            self.put(source, edges)
        self.names.update(names)

    def put(self, source: str, links: Iterable[PluginEdge]) -> None:
        """Replace the edges of one plugin."""
        for link in self._out.pop(source, ()):
            self._in[link.target].pop(link, None)
        edges = tuple(sorted(links, key=lambda link: (link.target_type, link.target)))
        if edges:
            self._out[source] = edges
        for link in edges:
            self._in.setdefault(link.target, {})[link] = None

    def links(self, source: str) -> tuple[PluginEdge, ...]:
        """The edges of a plugin."""
        return self._out.get(source, ())

    def incoming(self, target: str) -> Iterator[PluginEdge]:
        """The edges to a plugin or bundle."""
        return iter(self._in.get(target, ()))

    def plugins(self) -> set[str]:
        """All plugins that an edge names."""
        ends = {link.target for links in self._out.values() for link in links if link.target_type == "plugin"}
        return ends | self._out.keys()

    def name(self, plugin: str) -> str:
        """The catalog's name, else the one stored with an edge, else the id."""
        entry = self.catalog.get(plugin)
        return entry.name if entry is not None else self.names.get(plugin, plugin)

    def titled(self, plugin: str) -> str:
        """The name with the version, as explanations say it."""
        entry = self.catalog.get(plugin)
        return f"{entry.name} {entry.version}" if entry and entry.version else self.name(plugin)

    def fits(self, constraint: str | None, version: str | None) -> bool:
        """Whether a version is in a range; an unknown one, or one that isn't a PEP 440 version, fits any."""
        if constraint is None or version is None:
            return True
        key = constraint, version
        if key not in self._fits:
            if len(self._fits) > 100_000:
                self._fits.clear()
            self._fits[key] = _fits(constraint, version)
        return self._fits[key]

    def resolve(self, plugin: str) -> Resolution:
        """All that a plugin requires, to a depth of 20, and whether it is compatible."""
        walk = _Walk(self, plugin)
        failures = walk.failures()
        verdict: Verdict = failures[0][0] if failures else "resolved"
        texts = [text for _, text in failures]
        return Resolution.model_construct(
            plugin_id=plugin,
            resolves=not failures,
            resolve_failures=texts,
            nodes=walk.nodes(),
            verdict=verdict,
            reason=texts[0] if texts else None,
            dependencies=[
                Dependency(plugin_id=one, name=self.name(one), depth=depth)
                for one, depth in walk.depths.items()
                if depth
            ],
            total_count=len(walk.depths) - 1,
        )

    def conflicts(self, plugin: str) -> list[ConflictOut]:
        """What must not be installed with a plugin, whichever of the two declares it."""
        reasons: dict[str, str] = {}
        for link in self.links(plugin):
            if link.kind == "conflicts_with" and link.target_type == "plugin":
                reasons[link.target] = self._says(link)
        for link in self.incoming(plugin):
            if link.kind == "conflicts_with" and link.target_type == "plugin":
                reasons.setdefault(link.source, self._says(link))
        return sorted(
            (
                ConflictOut(plugin_id=other, name=self.name(other), reason=text)
                for other, text in reasons.items()
            ),
            key=lambda conflict: (conflict.name, conflict.plugin_id),
        )

    def _says(self, link: PluginEdge) -> str:
        versions = f" {link.constraint}" if link.constraint else ""
        return f"{self.name(link.source)} conflicts with {self.name(link.target)}{versions}"


class _Walk:
    """One resolution: what was reached, at which depth, and over which edge first."""

    def __init__(self, index: Index, root: str) -> None:
        self._index = index
        self._root = root
        self.depths: dict[str, int] = {root: 0}
        self._first: dict[str, PluginEdge] = {}
        self._bundles: dict[str, PluginEdge] = {}
        self._requiring: list[PluginEdge] = []
        level = [root]
        for depth in range(1, DEEPEST + 1):
            level = self._next(level, depth)
            if not level:
                break

    def _next(self, level: Sequence[str], depth: int) -> list[str]:
        next_level = []
        depths, first = self.depths, self._first
        for plugin in level:
            for link in self._index.links(plugin):
                if link.kind != "requires":
                    continue
                if link.target_type == "bundle":
                    self._bundles.setdefault(link.target, link)
                    continue
                self._requiring.append(link)
                if link.target not in depths:
                    depths[link.target] = depth
                    first[link.target] = link
                    next_level.append(link.target)
        return next_level

    def nodes(self) -> list[dict[str, Any]]:
        """What is required, nearest first; then what the plugin itself suggests."""
        nodes = [self._node(plugin, depth) for plugin, depth in self.depths.items() if depth]
        nodes += [_bundle(link, self.depths[link.source] + 1) for link in self._bundles.values()]
        for link in self._index.links(self._root):
            if link.kind == "suggests" and link.target not in self.depths:
                nodes.append({**self._bare(link.target, 1), "dependency_type": "suggests"})
        return nodes

    def _node(self, plugin: str, depth: int) -> dict[str, Any]:
        link = self._first[plugin]
        return {
            **self._bare(plugin, depth),
            "dependency_type": "requires",
            "version_constraint": link.constraint,
            "required_by": link.source,
        }

    def _bare(self, plugin: str, depth: int) -> dict[str, Any]:
        entry = self._index.catalog.get(plugin)
        return {
            "plugin_id": plugin,
            "name": self._index.name(plugin),
            "depth": depth,
            "type": "plugin",
            "version": None if entry is None else entry.version,
        }

    def failures(self) -> list[tuple[Verdict, str]]:
        """(verdict, explanation) of each incompatibility, the nearest first; at most 50."""
        failures = [*self._missing(), *self._mismatches(), *self._conflicts()]
        failures.sort(key=lambda failure: failure[0])
        nearest = failures[:_MOST_FAILURES]
        constrained = self._constrained({link.target for _, verdict, link in nearest if verdict != "missing"})
        return [(verdict, self._explained(verdict, link, constrained)) for _, verdict, link in nearest]

    def _explained(self, verdict: Verdict, link: PluginEdge, constrained: dict[str, list[PluginEdge]]) -> str:
        if verdict == "missing":
            return f"{self._way(link)}, which is not in the catalog"
        if verdict == "conflict":
            return self._clash(link)
        others = sorted(
            f"{self._index.name(other.source)} {other.constraint}"
            for other in constrained[link.target]
            if other is not link
        )
        requirers = f", required by {', '.join(others[:5])}" if others else ""
        return f"{self._way(link)}, the catalog has {self._index.titled(link.target)}{requirers}"

    def _constrained(self, targets: set[str]) -> dict[str, list[PluginEdge]]:
        """What requires each of these plugins in a version range."""
        requirers: dict[str, list[PluginEdge]] = {target: [] for target in targets}
        for link in self._requiring:
            if link.constraint and link.target in requirers:
                requirers[link.target].append(link)
        return requirers

    def _missing(self) -> Iterator[tuple[int, Verdict, PluginEdge]]:
        if self._index.has_catalog:
            for plugin, link in self._first.items():
                if plugin not in self._index.catalog:
                    yield self.depths[plugin], "missing", link

    def _mismatches(self) -> Iterator[tuple[int, Verdict, PluginEdge]]:
        catalog, fits = self._index.catalog, self._index.fits
        for link in self._requiring:
            if link.constraint is not None:
                target = catalog.get(link.target)
                if target is not None and not fits(link.constraint, target.version):
                    yield self.depths[link.source] + 1, "version_mismatch", link

    def _conflicts(self) -> Iterator[tuple[int, Verdict, PluginEdge]]:
        catalog, depths = self._index.catalog, self.depths
        for plugin in depths:
            for link in self._index.links(plugin):
                if link.kind != "conflicts_with" or link.target not in depths or link.target_type == "bundle":
                    continue
                target = catalog.get(link.target)
                if target is None or self._index.fits(link.constraint, target.version):
                    yield max(depths[link.source], depths[link.target]), "conflict", link

    def _clash(self, link: PluginEdge) -> str:
        source, target = link.source, link.target
        far, other = (source, target) if self.depths[source] > self.depths[target] else (target, source)
        return f"{self._way(self._first[far])}, which conflicts with {self._index.titled(other)}"

    def _way(self, last: PluginEdge) -> str:
        """The shortest path from the plugin to an edge, in words."""
        links = [last]
        while links[-1].source != self._root:
            links.append(self._first[links[-1].source])
        steps = []
        for link in reversed(links):
            versions = f" {link.constraint}" if link.constraint else ""
            steps.append(f"requires {self._index.name(link.target)}{versions}")
        return f"{self._index.titled(self._root)} {', which '.join(steps)}"


def _bundle(link: PluginEdge, depth: int) -> dict[str, Any]:
    return {
        "bundle": link.target,
        "name": link.target,
        "depth": depth,
        "type": "bundle",
        "dependency_type": "requires",
        "required_by": link.source,
    }


def _fits(constraint: str, version: str) -> bool:
    try:
        return SpecifierSet(constraint).contains(Version(version), prereleases=True)
    except (InvalidSpecifier, InvalidVersion):
        return True
