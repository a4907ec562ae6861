"""Documents that a question names: their passages precede those of documents that answer as well but that it
does not name. "Net sales rose" stands in every annual report, "Halvorsen 2022" in what one of them is about.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from builtin_plugins.rag.answering.words import content_stems, fold
from builtin_plugins.rag.services.loading import subject_in
from builtin_plugins.vectors.api import Hit

CANDIDATES: Final = 40
"""Passages among which documents that a question names are preferred."""
_WEIGHT: Final = 0.12
"""What a passage loses at most, of a score up to 1."""
_FISCAL: Final = re.compile(r"\bfy ?((?:19|20)\d\d)\b", re.IGNORECASE)


def with_plain_years(question: str) -> str:
    """The question with 2022 for "FY2022": texts and vectors know it as a year like any other."""
    return _FISCAL.sub(r"\1", question)


def with_both_years(question: str) -> str:
    """The question with "FY2022" and 2022, for a search by words, as a text may have either."""
    return _FISCAL.sub(r"FY\1 \1", question)


def prefer_named(hits: Sequence[Hit], question: str) -> list[Hit]:
    """The hits of a hybrid search in their new order: those of a document lose in score what another
    document is named better by the question. Nothing changes if their subjects don't tell them apart.

    A document without a subject, such as one of a single passage, is named by the text that was found.
    """
    shares = _shares(hits, question)
    best = max(shares.values(), default=0.0)
    if best <= 0.0:
        return [*hits]
    scored = [
        replace(hit, score=max(0.0, hit.score - _WEIGHT * (best - shares[hit.point.group]))) for hit in hits
    ]
    return sorted(scored, key=lambda hit: -hit.score)


def _shares(hits: Sequence[Hit], question: str) -> Mapping[str, float]:
    """How much of what the question names each document is about, 0 to 1; a word counts by its rarity."""
    terms = frozenset(content_stems(with_plain_years(question)))
    subjects, texts = dict[str, frozenset[str]](), dict[str, str]()
    for hit in hits:
        group, subject = hit.point.group, subject_in(hit.point.payload)
        texts.setdefault(group, hit.point.text)
        if subject and group not in subjects:
            subjects[group] = terms & {*content_stems(subject)}
    counts = Counter(word for names in subjects.values() for word in names)
    if not counts or len(texts) < 2:
        return {}
    rarity = {word: _rarity(count, len(subjects)) for word, count in counts.items()}
    for group, text in texts.items():
        if group not in subjects:
            subjects[group] = _begun_in(fold(text), counts)
    total = sum(rarity.values())
    return {group: sum(rarity[word] for word in names) / total for group, names in subjects.items()}


def _begun_in(text: str, stems: Iterable[str]) -> frozenset[str]:
    """The stems with which words of a folded text begin; a whole passage is not stemmed for a few of them."""
    return frozenset(one for one in stems if re.search(rf"(?<!\w){re.escape(one)}", text))


def _rarity(containing: int, total: int) -> float:
    return math.log1p((total - containing + 0.5) / (containing + 0.5))
