"""Answers without a model: what the passages themselves say, quoted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from builtin_plugins.extractive_answers.answering import answer
from builtin_plugins.extractive_answers.overview_questions import overview_question
from builtin_plugins.extractive_answers.overviews import answer_overview
from builtin_plugins.rag.api import AskedWords, DocumentOverview, DocumentShelf, QuotablePassage, Support
from kernel.sdk import Plugin, hookimpl


class ExtractiveAnswersPlugin(Plugin):
    """Implements rag's `answer_without_model` and `answer_overview`."""

    name = "extractive_answers"
    version = "0.1.0"
    description = "Answers without a model: the sentences that answer, quoted, or a refusal"
    author = "Platform"
    requires = ("rag",)

    @hookimpl
    def answer_without_model(
        self, question: AskedWords, passages: Sequence[QuotablePassage]
    ) -> Support | None:
        return answer(question, passages)

    @hookimpl
    async def answer_overview(
        self, question: str, open_shelf: Callable[[], DocumentShelf]
    ) -> DocumentOverview | None:
        overview = overview_question(question)
        return None if overview is None else await answer_overview(overview, open_shelf())
