"""What questions say about time, and sentences about validity, in thirteen languages."""

from __future__ import annotations

import pytest

from builtin_plugins.rag.dates.question_periods import period_in
from builtin_plugins.rag.dates.validity import VALID_FROM, VALID_UNTIL, validity_in
from tests.builtin_plugins.rag.time_set import KNOWN, SENTENCES, TODAY, UNSEEN, rows_of


def meant(question: str) -> tuple[str, str, str]:
    """What a question asks for, as in the table."""
    period = period_in(question, TODAY)
    if period is None:
        return "any", "", ""
    if period.kind == "current":
        return "newest" if period.newest else "today", "", ""
    return period.kind, str(period.start or ""), str(period.end or "")


@pytest.mark.parametrize("table", [KNOWN, UNSEEN], ids=["known", "unseen"])
def test_what_questions_mean(table: str) -> None:
    assert [(question, *meant(question)) for question, *_ in rows_of(table)] == rows_of(table)


def test_when_documents_say_that_they_apply() -> None:
    found = []
    for sentence, *_ in rows_of(SENTENCES):
        days = validity_in([sentence])
        found.append((sentence, *(str(days.get(field, "")) for field in (VALID_FROM, VALID_UNTIL))))
    assert found == rows_of(SENTENCES)


def test_days_that_contradict_each_other_are_not_proposed() -> None:
    text = "Valid until 30 June 2026. The annex is valid until 31 July 2026. Valid from 1 May 2025."
    assert list(validity_in([text])) == [VALID_FROM]
    assert validity_in(["Valid from 1 May 2026 until 1 May 2025."]) == {}
