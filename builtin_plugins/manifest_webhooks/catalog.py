"""Decides which manifests are live: names and webhook paths are unique, and a bad file harms no other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from .manifest import Manifest
from .problems import Problem

Claim: TypeAlias = tuple[Literal["name", "path"], str]
Holders: TypeAlias = Mapping[Claim, str]
"""The file that holds each name or webhook path; no other file gets these meanwhile."""
Files: TypeAlias = Mapping[str, Manifest | Sequence[Problem]]


@dataclass(frozen=True, slots=True)
class Catalog:
    """`live`: manifests by plugin name. `sources`: their files, by plugin name. `refused`: why, by file."""

    live: Mapping[str, Manifest]
    sources: Mapping[str, str]
    refused: Mapping[str, str]
    holders: Holders = field(default_factory=dict)


EMPTY = Catalog({}, {}, {})


def resolve(files: Files, taken_names: Set[str], previous: Holders | None = None) -> Catalog:
    """Decide which files are live; pure.

    `files`: each file's content, a manifest or its problems. `taken_names`: names of plugins in code, which
    always keep theirs. `previous`: the existing claims. A file keeps its claims while it declares them, and
    while it is unreadable: neither a new file beside a live one nor a mistake in an edit may give its webhook
    to another file. A file that was never live has no claims, and those of a removed file go to the first
    that asks, with a renamed file before others.
    """
    previous = previous or {}
    gone = {claim: source for claim, source in previous.items() if source not in files}
    holders = {claim: source for claim, source in previous.items() if _declares(files.get(source), claim)}
    live: dict[str, Manifest] = {}
    sources: dict[str, str] = {}
    manifests = [(source, content) for source, content in files.items() if isinstance(content, Manifest)]
    for source, content in sorted(manifests, key=lambda item: _rank(item[0], item[1], previous, gone)):
        claims = claims_of(content)
        if content.name not in taken_names and all(holders.get(claim, source) == source for claim in claims):
            live[content.name], sources[content.name] = content, source
            holders.update(dict.fromkeys(claims, source))
    serving = set(sources.values())
    refused = {
        source: f"{source}: {_reason(source, content, taken_names, holders, serving)}"
        for source, content in files.items()
        if source not in serving
    }
    return Catalog(live, sources, refused, gone | holders)


def claims_of(manifest: Manifest) -> tuple[Claim, Claim]:
    """The names and paths that a manifest claims."""
    return ("name", manifest.name), ("path", manifest.webhook.path)


def _declares(content: Manifest | Sequence[Problem] | None, claim: Claim) -> bool:
    if isinstance(content, Manifest):
        return claim in claims_of(content)
    return content is not None


def _rank(source: str, manifest: Manifest, holders: Holders, gone: Holders) -> tuple[int, int, str]:
    """Free claims go first to files with other claims, then to renamed files, else in file name order."""
    claims = claims_of(manifest)
    return -sum(holders.get(claim) == source for claim in claims), -sum(c in gone for c in claims), source


def _reason(
    source: str,
    content: Manifest | Sequence[Problem],
    names: Set[str],
    holders: Holders,
    serving: Set[str],
) -> str:
    if not isinstance(content, Manifest):
        return "; ".join(map(str, content)) or "the file has no manifest."
    if content.name in names:
        return f"the name {content.name} belongs to an installed plugin. Choose another metadata.name."
    kind, value = next(claim for claim in claims_of(content) if holders.get(claim, source) != source)
    what, holder = "webhook path" if kind == "path" else kind, holders[kind, value]
    if holder in serving:
        return f"the {what} {value} is also declared in {holder}, which is live. Change one of the two."
    return (
        f"the {what} {value} belongs to {holder}, which is refused too. Repair or remove that file, or "
        f"choose another {what} here."
    )
