"""An answer without a model runtime: the passages' own best sentences, cited."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from functools import partial

from builtin_plugins.rag.answering import extractive
from builtin_plugins.rag.questions.events import Found, Piece
from builtin_plugins.rag.questions.question import Question
from builtin_plugins.rag.questions.ranked import Ranked, Retrieved, on_pages, told
from builtin_plugins.rag.questions.rendering import Draft
from builtin_plugins.rag.questions.weighing import weighed
from builtin_plugins.rag.questions.widening import place_of


async def extracted(question: Question, found: Retrieved) -> AsyncGenerator[Found | Piece | Draft, None]:
    """Yields Found, a Piece, the Draft."""
    with question.trace.step("answer", "Choosing the sentences that answer"):
        judged, shown = await weighed(question, found), found.items
        compose = partial(extractive.compose, judged, language=await question.language())
        made = compose(_places(found, shown))
        if made.unshown is not None:
            # If few sources are shown, one that answers is worth more than the last of them.
            shown = [*shown[:-1], found.judged[made.unshown - 1]]
            made = compose(_places(found, shown))
    kept = on_pages(told(shown, made.confidence), made.pages) if made.supported else []
    yield Found(kept, question.request.explain)
    yield Piece(made.text)
    yield Draft(made.text, kept)


def _places(found: Retrieved, shown: Sequence[Ranked]) -> list[int | None]:
    """The number of the shown source that each passage is cited as."""
    return [place_of(item, shown) for item in found.judged]
