"""Types that plugins exchange about answering a question: further methods, and improved rankings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pydantic import BaseModel

from kernel.conversations import CitedPassage

if TYPE_CHECKING:
    from kernel.auth.callers import Caller

Verdict = TypeVar("Verdict", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """What to search for: `text`, by its words and its meaning.

    `imagined` is a passage as it might appear in a document; its meaning is searched for along with that of
    `text`. `top_k` is the number of passages to find, None for the question's own. With `trees`, the
    summaries of document trees are searched, too.
    """

    text: str
    imagined: str | None = None
    top_k: int | None = None
    trees: bool = False


class QuestionWork(Protocol):
    """What a method may do for a question: search, ask the model, report its steps. All within limits."""

    caller: Caller
    question: str
    top_k: int

    async def search(self, plan: SearchPlan) -> Sequence[CitedPassage]:
        """Passages that the caller may see, best first, by the question's filters and options."""
        ...

    async def write(self, instruction: str, text: str) -> str | None:
        """A short text by the model; None without a model runtime or once the question's budget is spent."""
        ...

    async def judge(
        self, instruction: str, text: str, verdict: type[Verdict], passages: Sequence[CitedPassage] = ()
    ) -> Verdict | None:
        """The model's verdict, strictly validated; None if there is none. Passages are passed as data, never
        as part of the instruction.
        """
        ...

    def step(self, name: str, message: str) -> AbstractContextManager[None]:
        """Measure and report a step of the work; streams show `message`."""
        ...

    def degrade(self, note: str) -> None:
        """Note in `method_details.degraded` that something was not done as requested."""
        ...

    def tell(self, key: str, value: Any) -> None:
        """Add an entry (JSON) to `method_details`."""
        ...


@dataclass(frozen=True, slots=True)
class QueryMethod:
    """A way to find the passages that a question is answered from (`register_methods`).

    `find` returns passages from `search`, best first; others are dropped. The answer is then written from
    them as for any method. `name` is lower case, and what clients send as `method`.
    """

    name: str
    description: str
    find: Callable[[QuestionWork], Awaitable[Sequence[CitedPassage]]]

    def __post_init__(self) -> None:
        if not self.name or self.name != self.name.lower() or len(self.name) > 32:
            raise ValueError("the name of a method must be lower case, with 1 to 32 characters")


@dataclass(frozen=True, slots=True)
class RankingScope:
    """What may be ranked: passages of these knowledge bases and, within them, of these documents.

    `document_ids` None means all documents. `limit` is how many passages the ranking will keep.
    """

    knowledge_base_ids: Sequence[str]
    document_ids: Sequence[str] | None
    limit: int


@dataclass(frozen=True, slots=True)
class PathStep:
    """One step on the path to a passage: `source` has the `relation` to `target`."""

    source: str
    relation: str
    target: str


@dataclass(frozen=True, slots=True)
class RankedPassage:
    """A passage's new place in a ranking (`enhance_ranking`): a given passage, or one to add.

    `score` (0 to 1) replaces the score in the ranking. `path` says how the passage was reached. `chunk_index`
    is its position in the document, which saves a search if known.
    """

    knowledge_base_id: str
    document_id: str
    chunk_id: str
    score: float
    path: Sequence[PathStep] = ()
    chunk_index: int | None = None

    def __post_init__(self) -> None:
        ids = (self.knowledge_base_id, self.document_id, self.chunk_id)
        if not all(isinstance(one, str) for one in ids):
            raise TypeError(f"the ids of a passage must be strings, not {ids}")
