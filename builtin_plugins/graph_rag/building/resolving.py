"""Finds names in one document that stand for the same thing, each with its reason and place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ..extraction.mentions import Mention, key_of

Reason = Literal["abbreviation", "title", "initials", "surname"]

REASONS: tuple[Reason, ...] = ("abbreviation", "title", "initials", "surname")
"""In order of reliability: an abbreviation that the text explains is more reliable than a similar name."""
_PEOPLE = frozenset({"PERSON", "NOUN_PHRASE"})
_SMALL = frozenset({"of", "the", "and", "for", "in", "de", "la", "le", "der", "die", "das", "und", "für"})
_TITLES = re.compile(
    r"^(?:(?:dr|prof|professor|doctor|mr|mrs|ms|miss|sir|dame|lady|lord|herr|frau|fru|monsieur|madame|"
    r"senor|senora|captain|capt|president|judge|justice)\b\.?\s+)+"
)
_BRACKETED = re.compile(r"\s*+\(\s*+[\"“]?([^()\"”]{2,20})[\"”]?\s*\)")


@dataclass(frozen=True, slots=True)
class ResolvedAlias:
    """`alias` stands for `key`, as `start` to `end` of the passage at `position` shows."""

    alias: str
    key: str
    name: str
    reason: Reason
    position: int
    start: int
    end: int


Places = Mapping[str, tuple[int, Mention]]


def resolve(texts: Sequence[str], by_passage: Sequence[Sequence[Mention]]) -> dict[str, ResolvedAlias]:
    """What each alias stands for. An ambiguous alias stands for itself."""
    first: dict[str, tuple[int, Mention]] = {}
    for position, mentions in enumerate(by_passage):
        for mention in mentions:
            first.setdefault(mention.key, (position, mention))
    proposed: dict[str, dict[Reason, dict[str, ResolvedAlias]]] = {}
    for candidate in (*_abbreviations(texts, by_passage), *_people(first)):
        proposed.setdefault(candidate.alias, {}).setdefault(candidate.reason, {}).setdefault(
            candidate.key, candidate
        )
    chosen = {alias: _best(reasons) for alias, reasons in proposed.items()}
    return _final({alias: best for alias, best in chosen.items() if best is not None})


def _best(reasons: Mapping[Reason, Mapping[str, ResolvedAlias]]) -> ResolvedAlias | None:
    for reason in REASONS:
        if reason in reasons:
            keys = reasons[reason]
            return next(iter(keys.values())) if len(keys) == 1 else None
    return None


def _final(chosen: Mapping[str, ResolvedAlias]) -> dict[str, ResolvedAlias]:
    """Follow chains of aliases to their end; cycles are left alone."""
    resolved = {}
    for alias, target in chosen.items():
        visited, key = {alias}, target.key
        while key in chosen and key not in visited:
            visited.add(key)
            key = chosen[key].key
        if key not in visited:
            resolved[alias] = ResolvedAlias(
                alias, key, target.name, target.reason, target.position, target.start, target.end
            )
    return resolved


def _abbreviations(texts: Sequence[str], by_passage: Sequence[Sequence[Mention]]) -> Iterator[ResolvedAlias]:
    """``World Health Organization (WHO)``: brackets after a name that contain its initials."""
    for position, (text, mentions) in enumerate(zip(texts, by_passage, strict=True)):
        for mention in mentions:
            match = _BRACKETED.match(text, mention.end)
            short = match.group(1).strip() if match else ""
            alias = key_of(short)
            if match and alias and alias != mention.key and _stands_for(short, mention.text):
                yield ResolvedAlias(
                    alias, mention.key, short, "abbreviation", position, mention.start, match.end()
                )


def _stands_for(short: str, name: str) -> bool:
    """Whether the letters of `short` are the initials of the words of `name`; small words may be left out."""
    letters = [char for char in short.casefold() if char.isalnum()]
    words = [word for word in re.split(r"[\W_]+", name.casefold()) if word]
    if len(letters) < 2 or len(words) < 2 or not any(char.isupper() for char in short):
        return False
    initials = [word[0] for word in words]
    large = [word[0] for word in words if word not in _SMALL]
    return letters in (initials, large)


def _people(first: Places) -> Iterator[ResolvedAlias]:
    """``Dr. Ada Lindqvist``, ``A. Lindqvist`` and ``Lindqvist`` beside ``Ada Lindqvist``."""
    full: dict[str, list[str]] = {}
    for key, (_, mention) in first.items():
        words = _TITLES.sub("", key).split()
        if mention.label in _PEOPLE and 2 <= len(words) <= 4 and len(words[0]) > 1 and _is_name(mention.text):
            full.setdefault(words[-1], []).append(" ".join(words))
    for key, (position, mention) in first.items():
        if mention.label not in _PEOPLE:
            continue
        bare = _TITLES.sub("", key)
        words = bare.split()
        if not words:
            continue
        if bare != key and len(words) > 1:
            yield _person(key, bare, mention, position, "title")
        for name in sorted(set(full.get(words[-1], ()))):
            if len(words) == 1 and _is_name(mention.text):
                yield _person(key, name, mention, position, "surname")
            elif len(words) == 2 and len(words[0]) == 1 and name[0] == words[0]:
                yield _person(key, name, mention, position, "initials")


def _person(alias: str, key: str, mention: Mention, position: int, reason: Reason) -> ResolvedAlias:
    return ResolvedAlias(alias, key, mention.text, reason, position, mention.start, mention.end)


def _is_name(text: str) -> bool:
    return all(word[:1].isupper() for word in re.split(r"[\s.]+", text) if word)
