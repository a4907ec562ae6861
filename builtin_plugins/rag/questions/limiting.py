"""What the period of a question does to its documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from builtin_plugins.rag.dates.question_periods import QuestionPeriod
from builtin_plugins.rag.filters.binding import BoundFilter
from builtin_plugins.rag.schemas_time import PeriodItem


@dataclass
class LimitingPeriod:
    """A period that limits a question's documents, and what they would be without it."""

    period: QuestionPeriod
    documents: BoundFilter
    otherwise: BoundFilter
    item: PeriodItem
    date_fields: Sequence[str]
