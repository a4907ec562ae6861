"""`corrective`: grade what was found; if it is weak, search again with better words.

After Yan et al. 2024, "Corrective Retrieval Augmented Generation". The retrieval's own calibrated measure
(`QuestionWork.support`) grades first, and the model moves that grade by one step at most: no retrieved text
can talk itself up from the lowest grade to the highest. The words of the second search come only from the
question.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from builtin_plugins.rag.api import NO_RUNTIME, QueryMethod, QuestionWork, RetrievedPassages, SearchPlan

Grade = Literal["incorrect", "ambiguous", "correct"]
_GRADES: tuple[Grade, ...] = ("incorrect", "ambiguous", "correct")
_SURE = 0.5
_ALIKE = 0.02  # adding one word to the query changes the measure of the same passages this much
_REWRITE_TOKENS = 80
_MOST_CHARS = 400
_RULES = (
    "You grade search results. Grade the passages as a whole: 'correct' if at least one answers the "
    "question, 'ambiguous' if they touch it without answering it, 'incorrect' if none has to do with it."
)
_REWRITE = (
    "Rewrite the question as a search query: other words for the same thing, names and numbers kept, in the "
    "language of the question. Write the query alone, on one line."
)


class Graded(BaseModel):
    """The model's answer."""

    model_config = ConfigDict(extra="forbid")

    grade: Grade


async def check(work: QuestionWork, retrieved: RetrievedPassages) -> RetrievedPassages:
    """What was found, or what a second search found unless that is worse.

    Without a model, only the calibrated measure grades, and the second search uses the content words.
    """
    with work.step("grade", "Grading the passages"):
        grade = await _grade(work, retrieved)
    details = {"grade": grade, "score": _GRADES.index(grade) / 2, "corrected": False}
    work.details["corrective"] = details
    if grade == "correct":
        return retrieved
    with work.step("rewrite", "Searching with other words"):
        query = await _rewritten(work)
        more = await work.search(SearchPlan(query))
    details["refined_query_chars"] = len(query)
    if not more or await _is_worse(work, more, retrieved):
        details["still_insufficient"] = True
        return retrieved
    details["corrected"] = True
    if await calibrated(work, more) != "correct":
        details["still_insufficient"] = True
    return more


async def _grade(work: QuestionWork, retrieved: RetrievedPassages) -> Grade:
    own = await calibrated(work, retrieved)
    verdict = await work.judge(_RULES, work.question, Graded, retrieved) if retrieved else None
    if verdict is None:
        why = "graded by the retrieval's own scores"
        if not await work.has_model():
            work.degrade(f"{NO_RUNTIME}, {why}")
        elif retrieved:
            work.degrade(why)
        return own
    at, target = _GRADES.index(own), _GRADES.index(verdict.grade)
    return _GRADES[max(at - 1, min(at + 1, target))]


async def _rewritten(work: QuestionWork) -> str:
    text = await work.write(_REWRITE, work.question, max_tokens=_REWRITE_TOKENS)
    line = next((line for line in (text or "").strip().splitlines() if line.strip()), "")
    return line.strip(" \"'")[:_MOST_CHARS] or work.keywords()


async def _is_worse(work: QuestionWork, more: RetrievedPassages, retrieved: RetrievedPassages) -> bool:
    """Whether a second search loses the answer, or its shown passages measure clearly lower."""
    if await _is_supported(work, retrieved) and not await _is_supported(work, more):
        return True
    return await _source_support(work, more) < await _source_support(work, retrieved) - _ALIKE


async def _is_supported(work: QuestionWork, retrieved: RetrievedPassages) -> bool:
    measured = await work.support(retrieved)
    return bool(retrieved) if measured is None else measured.is_enough


async def _source_support(work: QuestionWork, retrieved: RetrievedPassages) -> float:
    """Measure the passages that would be shown, not those that decide whether there is an answer."""
    measured = await work.support(retrieved.of(retrieved.passages))
    return 0.0 if measured is None else measured.probability


async def calibrated(work: QuestionWork, retrieved: RetrievedPassages) -> Grade:
    """The grade that the retrieval's own measure gives; without one, nothing found is incorrect."""
    measured = await work.support(retrieved)
    if measured is None:
        return "ambiguous" if retrieved else "incorrect"
    if measured.is_enough and measured.probability >= _SURE:
        return "correct"
    return "ambiguous" if measured.is_enough or measured.is_hopeful else "incorrect"


CORRECTIVE = QueryMethod("corrective", "Grades what it found, and searches again if it is weak.", check=check)
