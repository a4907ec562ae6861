"""The graph of one document, ready to be written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from builtin_plugins.rag import api as rag

from ..extraction.mentions import NOUN_PHRASE, Mention
from ..models import LONGEST_KEY
from .protocol import EntityLink, Extraction, ExtractionEngine
from .relations import near
from .resolving import ResolvedAlias, resolve


@dataclass(frozen=True, slots=True)
class EntityFound:
    """An entity of the document under its most frequent name; `position` is its first passage."""

    key: str
    name: str
    label: str
    mentions: int
    position: int


@dataclass(frozen=True, slots=True)
class RelationFound:
    """A relation of the document with its total weight, and the first place that shows it."""

    link: EntityLink
    weight: float
    position: int


@dataclass(frozen=True, slots=True)
class BuiltGraph:
    """Everything to be written as rows."""

    passages: Sequence[rag.Passage]
    mentions: Sequence[Sequence[Mention]]
    entities: Sequence[EntityFound]
    aliases: Sequence[ResolvedAlias]
    relations: Sequence[RelationFound]


def counted(entities: int, relations: int) -> str:
    """The size of a graph, in words."""
    return (
        f"{entities} {'entity' if entities == 1 else 'entities'}, "
        f"{relations} {'relationship' if relations == 1 else 'relationships'}"
    )


@dataclass
class _EntityTally:
    names: Counter[str] = field(default_factory=Counter)
    labels: Counter[str] = field(default_factory=Counter)
    places: set[int] = field(default_factory=set)
    position: int = 0


def build(
    extractor: ExtractionEngine,
    passages: Sequence[rag.Passage],
    *,
    relationships: bool,
    language: str | None = None,
) -> BuiltGraph:
    """Extract, resolve and relate. Slow for long texts: call it in a thread."""
    texts = [passage.text for passage in passages]
    analysed = extractor.analyse(texts, language)
    aliases = resolve(texts, [_usable(one.mentions) for one in analysed])
    return assemble(passages, analysed, aliases, relationships=relationships)


def assemble(
    passages: Sequence[rag.Passage],
    analysed: Sequence[Extraction],
    aliases: dict[str, ResolvedAlias],
    *,
    relationships: bool,
) -> BuiltGraph:
    """The graph of what was found in each passage, with `aliases` resolved."""
    usable = [_usable(one.mentions) for one in analysed]
    mentions = [[_resolved(mention, aliases) for mention in one] for one in usable]
    entities = _entities(passages, mentions)
    links = _links(analysed, mentions, aliases) if relationships else []
    keys = {entity.key for entity in entities}
    relations = _relations((at, link) for at, link in links if {link.subject, link.object} <= keys)
    used_aliases = sorted((one for one in aliases.values() if one.key in keys), key=lambda one: one.alias)
    return BuiltGraph(passages, mentions, entities, used_aliases, relations)


def _usable(mentions: Iterable[Mention]) -> list[Mention]:
    return [mention for mention in mentions if 0 < len(mention.key) <= LONGEST_KEY]


def _resolved(mention: Mention, aliases: dict[str, ResolvedAlias]) -> Mention:
    alias = aliases.get(mention.key)
    return mention if alias is None else mention._replace(key=alias.key)


def _entities(passages: Sequence[rag.Passage], mentions: Sequence[Sequence[Mention]]) -> list[EntityFound]:
    """The entities by key. A mention in the overlap of two passages counts once."""
    tallies: dict[str, _EntityTally] = {}
    for passage, passage_mentions in zip(passages, mentions, strict=True):
        for mention in passage_mentions:
            tally = tallies.setdefault(mention.key, _EntityTally(position=passage.position))
            place = passage.char_start + mention.start
            if place not in tally.places:
                tally.places.add(place)
                tally.names[" ".join(mention.text.split())] += 1
                tally.labels[mention.label] += 1
    return [
        EntityFound(key, _name(tally.names), _label(tally.labels), len(tally.places), tally.position)
        for key, tally in sorted(tallies.items())
    ]


def _name(names: Counter[str]) -> str:
    """The most frequent spelling; the longest if several are equally frequent."""
    return min(names, key=lambda name: (-names[name], -len(name), name))


def _label(labels: Counter[str]) -> str:
    """The most frequent meaningful label, if there is one."""
    return min(labels, key=lambda label: (label == NOUN_PHRASE, -labels[label], label))


def _links(
    analysed: Sequence[Extraction], mentions: Sequence[Sequence[Mention]], aliases: dict[str, ResolvedAlias]
) -> Iterable[tuple[int, EntityLink]]:
    for position, (extraction, passage_mentions) in enumerate(zip(analysed, mentions, strict=True)):
        if extraction.links is None:
            yield from ((position, link) for link in near(passage_mentions))
            continue
        for link in extraction.links:
            subject, target = (
                aliases[key].key if key in aliases else key for key in (link.subject, link.object)
            )
            if subject != target:
                yield position, link._replace(subject=subject, object=target)


def _relations(links: Iterable[tuple[int, EntityLink]]) -> list[RelationFound]:
    """One relation for each pair and predicate; co-occurrence takes its direction from the first place."""
    first: dict[tuple[str, str, str], tuple[int, EntityLink]] = {}
    weights: dict[tuple[str, str, str], float] = {}
    for position, link in links:
        left, right = link.subject, link.object
        if link.kind == "CO_OCCURRENCE" and right < left:
            left, right = right, left
        pair = (left, link.predicate[:LONGEST_KEY], right)
        first.setdefault(pair, (position, link))
        weights[pair] = weights.get(pair, 0.0) + link.weight
    return [
        RelationFound(link._replace(predicate=pair[1]), round(weights[pair], 4), position)
        for pair, (position, link) in first.items()
    ]
