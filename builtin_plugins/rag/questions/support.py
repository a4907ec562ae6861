"""Whether the passages answer a question: one measure for answers, searches and methods, by a plugin."""

from __future__ import annotations

from collections.abc import Sequence

from builtin_plugins.rag import api
from builtin_plugins.rag.answering.matching import asked_words, quotable
from builtin_plugins.rag.passages import Passage, RetrievedPassages
from builtin_plugins.rag.questions.question import Inquiry, in_thread
from kernel.sdk import Platform


async def support(inquiry: Inquiry, retrieved: RetrievedPassages) -> api.Support | None:
    """What the deciding passages say: the best few, however many are shown. Results are cached.

    None if no plugin measures it.
    """
    passages = tuple(retrieved.judged)
    key = (inquiry.matched or inquiry.request.question, passages)
    if key not in inquiry.supports:
        language = await inquiry.language()
        inquiry.supports[key] = await in_thread(
            inquiry.platform, _measure, inquiry.platform, key[0], passages, language
        )
    return inquiry.supports[key]


async def is_supported(inquiry: Inquiry, retrieved: RetrievedPassages) -> bool:
    """Whether there would be an answer; if nothing measures that, whether anything was found."""
    measured = await support(inquiry, retrieved)
    return bool(retrieved.passages) if measured is None else measured.is_enough


def _measure(
    platform: Platform, question: str, passages: Sequence[Passage], language: str | None
) -> api.Support | None:
    question_words = asked_words(question, language)
    return platform.hooks.ask_now(
        api.answer_without_model, platform, question_words, quotable(question_words, passages)
    )
