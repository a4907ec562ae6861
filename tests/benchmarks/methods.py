"""B14: what each method costs in our own code, beyond the search and the model.

Counted is the processor time of all threads of the process, from the check of the caller's rights to the
finished answer, on the longest way of each method. Left out is what is not the method's: embedding, whoever
wants it (the question, an imagined passage, sentences to be weighed), and as many searches as the method
makes, each as it costs alone: vectors, words, rows. The model answers at once, so of it only the handing
on of its texts is counted. The questions are new and their passages have been
asked about before; what reading passages for the first time adds is told by itself.

Processor time and not the clock, as waiting for a core or a thread is nothing that our code does; that of all
threads, as what is computed beside the event loop takes a core from somebody, too. The part of the event loop
is told as well: that long other requests are held up.

python -m tests.benchmarks.methods
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from statistics import median

import uvloop

from builtin_plugins.extractive_answers.answering import answer
from builtin_plugins.inference import api as inference
from builtin_plugins.inference.api import Embedded
from builtin_plugins.rag.answering.matching import asked_words, quotable
from builtin_plugins.rag.filters.binding import bound
from builtin_plugins.rag.passages import Passage
from builtin_plugins.rag.questions import asking
from builtin_plugins.rag.questions.retrieval import Sought, retrieve
from builtin_plugins.rag.schemas import QueryRequest
from kernel.sdk import Caller, Principal, hookimpl
from kernel.testing import Running, platforms, somebody
from tests.benchmarks.table import Row, print_table
from tests.benchmarks.texts import article
from tests.builtin_plugins.rag.rag_support import make_base, make_pipeline, upload
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.saying_model import SayingModel

METHODS = ("standard", "hyde", "self_rag", "corrective", "raptor", "auto")
QUESTIONS = 60
TARGET_MS = 5.0
TOP_K = 10
IMAGINED = "The engineer in Aarhus repairs the turbine of the harbour."
DOCUMENTS = 20
MISSING, REWRITTEN = "turbine repair", "engineer Aarhus turbine repair harbour"
SECOND = {"self_rag": MISSING, "auto": MISSING, "corrective": REWRITTEN}

_SAID = {
    "Write one short paragraph": IMAGINED,
    "You grade search results": json.dumps({"grade": "ambiguous"}),
    "Rewrite the question": REWRITTEN,
    "You judge a draft": json.dumps({"grounded": 0.5, "complete": 0.5, "search": MISSING}),
    "You plan a search": json.dumps(
        {
            "complexity": "complex",
            "intent": "who",
            "retrieval_strategy": "hybrid",
            "top_k": TOP_K,
            "use_hyde": True,
            "use_self_rag": True,
            "use_reranking": True,
            "use_query_expansion": False,
            "confidence": 0.9,
        }
    ),
}


@dataclass(frozen=True)
class Cost:
    """Processor seconds of the event loop's thread, and of the process."""

    loop: float = 0.0
    process: float = 0.0

    @classmethod
    def now(cls) -> Cost:
        return cls(time.thread_time(), time.process_time())

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.loop + other.loop, self.process + other.process)

    def __sub__(self, other: Cost) -> Cost:
        return self + other * -1

    def __mul__(self, times: float) -> Cost:
        return Cost(self.loop * times, self.process * times)


class TimedEmbeddings(HashEmbeddings):
    """Embeddings that know what they cost: they are a model's work, wherever a method wants them."""

    def __init__(self) -> None:
        super().__init__()
        self.spent = Cost()

    @hookimpl
    async def embed_texts(self, model: str, texts: Sequence[str]) -> Embedded | None:
        started = Cost.now()
        made = await super().embed_texts(model, texts)
        self.spent += Cost.now() - started
        return made


class QuickModel(SayingModel):
    """A model that answers at once; every method takes its longest way with it."""

    name = "quick_model"
    tokens = 100

    def say(self, messages: Sequence[inference.ChatMessage]) -> str:
        start = messages[0].content
        return next((said for known, said in _SAID.items() if start.startswith(known)), "It is repaired [1].")


@dataclass(frozen=True)
class Spent:
    """Processor time of one question, in milliseconds, and what was done in it."""

    whole: Cost
    searches: int
    calls: int


def asked(number: int) -> str:
    return f"Which turbine does the engineer in Aarhus repair, number {number}?"


class Clock:
    """Processor time of questions without that of embedding, in milliseconds.

    That of the median question: now and then one includes garbage collection or work in the background.
    """

    def __init__(self, engine: TimedEmbeddings) -> None:
        self._engine = engine
        self._laps: list[Cost] = []
        self._start = self._now()

    def _now(self) -> Cost:
        return Cost.now() - self._engine.spent

    def lap(self) -> None:
        now = self._now()
        self._laps.append(now - self._start)
        self._start = now

    def read(self) -> Cost:
        loop, process = (median(costs) for costs in zip(*map(astuple, self._laps), strict=True))
        return Cost(loop, process) * 1000


async def answering(caller: Caller, engine: TimedEmbeddings, pipeline: str, method: str) -> Spent:
    """A question from the check of the caller's rights to the answer."""
    searches = calls = 0
    clock = Clock(engine)
    for number in range(QUESTIONS):
        request = QueryRequest(question=asked(number), method=method, explain=True)
        answer = await asking.answer(await asking.prepare(caller, pipeline, request))
        assert answer.explain is not None and answer.method == method, answer
        searches += sum(one.step == "search" for one in answer.explain.steps)
        calls += answer.model_calls
        clock.lap()
    return Spent(clock.read(), searches // QUESTIONS, calls // QUESTIONS)


async def searching(
    caller: Caller, engine: TimedEmbeddings, pipeline: str, method: str, words: str | None = None
) -> Cost:
    """Processor time of one search as the method does it, in milliseconds; `words` are its second's."""
    imagined = IMAGINED if method in ("hyde", "auto") and words is None else None
    _, bases = await asking.sources_of(caller, pipeline)
    clock = Clock(engine)
    for number in range(QUESTIONS):
        question, most = asked(number), TOP_K if method == "auto" else 5
        everything = await bound(caller, [base.id for base in bases])
        sought = Sought(words or question, most, everything, imagined=imagined, question=question)
        await retrieve(caller.platform, bases, sought)
        clock.lap()
    return clock.read()


def first_reading() -> float:
    """Milliseconds of processor time that five passages cost more when they are read for the first time."""
    texts = [article(number, 60)[:1500] for number in range(5 * QUESTIONS)]
    passages = [
        Passage(text, "a.txt", 0.5, f"c{at}", "d", near=0.5, language="en") for at, text in enumerate(texts)
    ]
    spent = []
    for new in (True, False):
        started = time.process_time()
        for number in range(QUESTIONS):
            some = passages[5 * number :][:5] if new else passages[-5:]
            words = asked_words(asked(number), "en")
            answer(words, quotable(words, some))
        spent.append((time.process_time() - started) * 1000 / QUESTIONS)
    return spent[0] - spent[1]


async def bench(folder: Path) -> list[Row]:
    """Each method over the same documents, by what the event loop's thread spends."""
    rows, engine = [], TimedEmbeddings()
    async with platforms(folder) as start:
        running: Running = await start("rag_methods", "extractive_answers", engine, QuickModel())
        ann = await somebody(running)
        base = await make_base(ann)
        for number in range(DOCUMENTS):
            await upload(ann, base, f"{number}.txt", article(number, 60))
        await running.run_jobs()
        pipeline = await make_pipeline(ann, base)
        caller = Caller(running.platform, Principal("user", ann.user["username"], ann.user["id"]))
        await answering(caller, engine, pipeline, "auto")
        for method in METHODS:
            spent = await answering(caller, engine, pipeline, method)
            own = spent.whole - await searching(caller, engine, pipeline, method)
            if spent.searches > 1:
                own -= await searching(caller, engine, pipeline, method, SECOND[method])
            what = f"{method}, beyond {spent.searches} searches and {spent.calls} model calls"
            figure = f"{own.process:.1f} ms, {own.loop:.1f} of them in the event loop"
            rows.append(Row("B14", what, figure, "< 5 ms", own.process < TARGET_MS))
    first = f"{first_reading():.1f} ms more"
    return [*rows, Row("B14", "five passages read for the first time", first, "-", True)]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        print_table(uvloop.run(bench(Path(folder))))


if __name__ == "__main__":
    main()
