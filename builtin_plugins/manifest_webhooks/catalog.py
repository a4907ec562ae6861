"""Which manifests are live: names and webhook paths are unique, and one bad file harms no other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from .manifest import Manifest
from .problems import Problem


@dataclass(frozen=True, slots=True)
class Catalog:
    """`live`: manifests by plugin name. `sources`: their files, by plugin name. `refused`: why, by file."""

    live: Mapping[str, Manifest]
    sources: Mapping[str, str]
    refused: Mapping[str, str]


EMPTY = Catalog({}, {}, {})


def resolve(
    files: Mapping[str, Manifest | Sequence[Problem]], taken_names: Set[str], running: Catalog = EMPTY
) -> Catalog:
    """Decide which files are live; pure. Of those that claim one name or path, the one of `running` stays:
    what is dropped beside it must not take its webhook over. Else their own names decide.

    `files`: what each file holds, a manifest or the problems that prevent one. `taken_names`: names of
    plugins made of code, which always keep theirs. A file that is refused reserves nothing.
    """
    live: dict[str, Manifest] = {}
    sources: dict[str, str] = {}
    refused: dict[str, str] = {}
    paths: dict[str, str] = {}
    running_from = {source: running.live[name] for name, source in running.sources.items()}
    for source, found in sorted(files.items(), key=lambda item: (-_kept(running_from, *item), item[0])):
        reason = _reason(found, taken_names, sources, paths)
        if reason is not None:
            refused[source] = f"{source}: {reason}"
        elif isinstance(found, Manifest):
            live[found.name], sources[found.name], paths[found.webhook.path] = found, source, source
    return Catalog(live, sources, refused)


def _kept(running: Mapping[str, Manifest], source: str, found: Manifest | Sequence[Problem]) -> int:
    """How much of what a file claims it has already: its path, its name."""
    own = running.get(source)
    if own is None or not isinstance(found, Manifest):
        return 0
    return (own.name == found.name) + (own.webhook.path == found.webhook.path)


def _reason(
    found: Manifest | Sequence[Problem],
    taken: Set[str],
    sources: Mapping[str, str],
    paths: Mapping[str, str],
) -> str | None:
    if not isinstance(found, Manifest):
        return "; ".join(map(str, found)) or "the file has no manifest."
    name, path = found.name, found.webhook.path
    if name in taken:
        return f"the name {name} belongs to an installed plugin. Choose another metadata.name."
    if name in sources:
        return f"the name {name} is also declared in {sources[name]}, which is live. Rename one of the two."
    if path in paths:
        return (
            f"the webhook path {path} is also declared in {paths[path]}, which is live. "
            "Change one of the two."
        )
    return None
