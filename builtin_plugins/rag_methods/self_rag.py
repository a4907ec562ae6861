"""`self_rag`: write a draft, have it judged, and search for what it lacks.

After Asai et al. 2023, "Self-RAG", but one model judges its own draft instead of a trained critic. There are
at most two drafts; the better one is the answer.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from builtin_plugins.rag.api import (
    NO_RUNTIME,
    AnswerFailed,
    Draft,
    QueryMethod,
    QuestionWork,
    RetrievedPassages,
    SearchPlan,
)

ITERATIONS = 2
THRESHOLD = 0.7
_RULES = (
    "You judge a draft of an answer. 'grounded' (0 to 1): how much of it the passages say. 'complete' "
    "(0 to 1): how well it answers the question. 'search': what to search for to make it better, in a few "
    "words; empty if nothing is missing."
)

Share = Annotated[float, Field(ge=0, le=1)]


class SelfAssessment(BaseModel):
    """The model's answer."""

    model_config = ConfigDict(extra="forbid")

    grounded: Share
    complete: Share
    search: Annotated[str, Field(max_length=400)]

    @property
    def score(self) -> float:
        return min(self.grounded, self.complete)


async def check(work: QuestionWork, retrieved: RetrievedPassages) -> RetrievedPassages | Draft:
    """The accepted draft; the passages if there is no model to judge one, as `standard` does."""
    details = {"iterations": 1, "evaluated": False, "threshold_met": None, "refined": False}
    work.details["self_rag"] = details
    if not await work.has_model():
        work.degrade(f"{NO_RUNTIME} that could judge an answer")
        return retrieved
    best: tuple[float, Draft] | None = None
    for iteration in range(1, ITERATIONS + 1):
        details["iterations"] = iteration
        draft = await _drafted(work, retrieved, again=best is not None)
        if draft is None:
            details["refined"] = False
            break
        with work.step("judge", "Judging the draft"):
            judged = await work.judge(_RULES, work.question, SelfAssessment, retrieved, draft=draft, keep=0)
        if judged is None:
            return draft if best is None else best[1]
        if best is None or judged.score > best[0]:
            best = (judged.score, draft)
        details |= {"evaluated": True, "threshold_met": best[0] >= THRESHOLD}
        if best[0] >= THRESHOLD or iteration == ITERATIONS or not _may_refine(work, judged):
            break
        details["refined"] = True
        retrieved = _together(retrieved, await work.search(SearchPlan(judged.search)), work.top_k)
    assert best is not None
    return best[1]


async def _drafted(work: QuestionWork, retrieved: RetrievedPassages, *, again: bool) -> Draft | None:
    """A draft; None if the second one fails, so that the first is kept."""
    try:
        with work.step("draft", "Drafting an answer"):
            return await work.draft(retrieved)
    except AnswerFailed as error:
        if not again:
            raise
        work.degrade(f"not refined, the second draft failed: {error.detail}")
        return None


def _may_refine(work: QuestionWork, judged: SelfAssessment) -> bool:
    if not judged.search.strip():
        return False
    lacking = work.lacks()
    if lacking:
        work.degrade(f"not refined, as a question may cost at most {lacking}")
    return lacking is None


def _together(retrieved: RetrievedPassages, more: RetrievedPassages, top_k: int) -> RetrievedPassages:
    """The best of both searches, each passage once; up to half of them are new."""
    ids = {one.chunk_id for one in retrieved}
    fresh = [one for one in more if one.chunk_id not in ids]
    best = list(retrieved[: max(1, top_k - len(fresh[: top_k // 2]))])
    return retrieved.of([*best, *fresh[: top_k - len(best)]])


SELF_RAG = QueryMethod("self_rag", "Judges its draft, and searches for what it lacks.", check=check)
