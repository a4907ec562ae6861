"""What the walk over shared names adds to hybrid search, and what it costs.

`python -m tests.benchmarks.graph [--cost | --real] [passages …]`: for multi-hop sets (`multi_hop`) and sets
that one passage answers, recall@5, nDCG@10 and recall@1 of BM25, vectors, hybrid, and hybrid with the walk by
each engine that is installed, the latter with their difference to hybrid and a 95 % interval (bootstrap over
questions). Then passages a second, milliseconds a question and memory at each size, 20,000 and 100,000 by
default. Embedding takes some minutes, and spaCy as long: `--cost` leaves the sets out, `--real` all but those
of texts that others wrote (`faq`, `passages`), and `PLATFORM_BENCH_ENGINES=rules` leaves spaCy out.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from builtin_plugins.documents.blocks import Block
from builtin_plugins.documents.chunking import chunk
from builtin_plugins.embeddings.catalog import MODELS
from builtin_plugins.embeddings.settings import EmbeddingsSettings
from builtin_plugins.graph_rag.building.grammar import GrammarEngine
from builtin_plugins.graph_rag.building.protocol import ExtractionEngine
from builtin_plugins.graph_rag.building.rule_engine import rules
from builtin_plugins.graph_rag.extraction.rules import extract
from builtin_plugins.graph_rag.walk.digests import digest
from builtin_plugins.graph_rag.walk.index import WalkIndex
from builtin_plugins.graph_rag.walk.ranking import MOVED, raised
from builtin_plugins.graph_rag.walk.steps import SOURCES, RankedSource, steps
from builtin_plugins.vectors.dense import DenseIndex
from builtin_plugins.vectors.fusion import hybrid, weight_for
from builtin_plugins.vectors.text import TextIndex
from tests.benchmarks import faq
from tests.benchmarks.evaluation_sets import SETS, EvaluationSet, Question, load, ndcg
from tests.benchmarks.languages import LANGUAGES, make_in
from tests.benchmarks.multi_hop import MultiHopSet, make
from tests.benchmarks.passages import documents as described

MODEL = next(model for model in MODELS if model.name == "multilingual-e5-small")
CANDIDATES = 50
SIZES = (20_000, 100_000)
ARTICLES = 1_500

Ranking = list[int]


@dataclass(frozen=True)
class Rankings:
    """For each question the places of passages, best first, by method."""

    bm25: list[Ranking]
    dense: list[Ranking]
    hybrid: list[Ranking]
    walks: dict[str, list[Ranking]]  # by engine


def engines() -> dict[str, ExtractionEngine]:
    """Engines that find entities without a model runtime, by name."""
    wanted = os.environ.get("PLATFORM_BENCH_ENGINES", "rules,spacy").split(",")
    found = (rules(), GrammarEngine("en_core_web_sm").extractor())
    return {one.name: one for one in found if one.name in wanted and one.missing() is None}


def index_of(passages: Sequence[str], engine: ExtractionEngine) -> WalkIndex:
    """An index of passages, each a document named by its place."""
    index = WalkIndex()
    found = engine.analyse(passages, None)
    index.put(
        [
            (str(at), [digest(str(at), 0, text, one.mentions)])
            for at, (text, one) in enumerate(zip(passages, found, strict=True))
        ]
    )
    return index


def walked(
    index: WalkIndex, passages: Sequence[str], question: str, places: Ranking, scores: list[float]
) -> Ranking:
    """The ranking with what the walk moves, as RAG applies it."""
    sources = [
        RankedSource(str(at), str(at), score, passages[at])
        for at, score in zip(places[:SOURCES], scores, strict=False)
    ]
    found = steps(index.segments, question, sources, most=MOVED)
    known = {at: number for number, at in enumerate(places)}
    made = raised(scores, [(known.get(int(step.group)), step.worth) for step in found])
    by_place = dict(zip(places, scores, strict=True))
    by_place |= {places[number]: score for number, score in made.lifted.items()}
    by_place |= {
        int(step.group): new for step, new in zip(found, made.reached, strict=True) if new is not None
    }
    return sorted(by_place, key=lambda at: -by_place[at])


def rankings(collection: EvaluationSet, extractors: Mapping[str, ExtractionEngine]) -> Rankings:
    engine = MODEL.load(EmbeddingsSettings())
    labels, passages = np.arange(len(collection.passages)), collection.passages
    near, worded = DenseIndex(engine.dimension), TextIndex()
    indexes = {name: index_of(passages, one) for name, one in extractors.items()}
    near.add(labels, engine.encode([MODEL.prefixes["passage"] + text for text in passages]))
    worded.add(labels, passages)
    vectors = engine.encode([MODEL.prefixes["query"] + question.text for question in collection.questions])
    found = Rankings([], [], [], {name: [] for name in extractors})
    for question, vector in zip(collection.questions, vectors, strict=True):
        text = question.text
        both = hybrid(
            partial(near.search, vector),
            partial(worded.search, text),
            CANDIDATES,
            weight=weight_for(text, MODEL.meaning),
            unrelated=MODEL.unrelated,
        )
        places = both.labels.tolist()
        found.bm25.append(worded.search(text, 10).labels.tolist())
        found.dense.append(near.search(vector, 10).labels.tolist())
        found.hybrid.append(places)
        for name, index in indexes.items():
            found.walks[name].append(walked(index, passages, text, places, both.scores.tolist()))
    return found


def as_evaluation(name: str, made: MultiHopSet) -> EvaluationSet:
    """The set in the shape of the others: each passage that is needed counts 1."""
    questions = [Question(one.text, dict.fromkeys(one.needed, 1)) for one in made.questions]
    return EvaluationSet(name, made.passages, questions)


def recall(places: Ranking, question: Question, k: int) -> float:
    """The share of the relevant passages among the first `k`."""
    return len(question.grades.keys() & set(places[:k])) / len(question.grades)


def interval(differences: npt.NDArray[np.float64]) -> tuple[float, float]:
    chance = np.random.default_rng(7)
    picks = chance.integers(0, len(differences), (2_000, len(differences)))
    low, high = np.quantile(differences[picks].mean(axis=1), [0.025, 0.975])
    return float(low), float(high)


def print_quality(collection: EvaluationSet, extractors: Mapping[str, ExtractionEngine]) -> None:
    found = rankings(collection, extractors)
    plain = {"bm25": found.bm25, "dense": found.dense, "hybrid": found.hybrid}
    measures: Mapping[str, Callable[[Ranking, Question], float]] = {
        "recall@5": lambda places, question: recall(places, question, 5),
        "nDCG@10": lambda places, question: ndcg(places, question.grades),
        "recall@1": lambda places, question: recall(places, question, 1),
    }
    for name, measure in measures.items():
        columns = {
            method: np.array([measure(*pair) for pair in zip(ranked, collection.questions, strict=True)])
            for method, ranked in (plain | found.walks).items()
        }
        figures = "".join(f"{values.mean():8.3f}" for values in columns.values())
        gains = "".join(_gain(columns[method] - columns["hybrid"]) for method in found.walks)
        print(f"{collection.name:<12}{name:<10}{figures}{gains}", flush=True)


def _gain(differences: npt.NDArray[np.float64]) -> str:
    low, high = interval(differences)
    return f"{f'{100 * differences.mean():+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]':>22}"


def print_cost(sizes: Iterable[int]) -> None:
    """Speed and memory with that many passages, all of one generated world."""
    for size in sizes:
        made = make("bridge", size=int(size / 1.12), questions=200)
        started = time.process_time()
        mentions = [extract(text) for text in made.passages]
        extracted = time.process_time() - started
        started = time.process_time()
        index = WalkIndex()
        digests = [
            (str(at), [digest(str(at), 0, text, mentions[at])]) for at, text in enumerate(made.passages)
        ]
        index.put(digests)
        indexed = time.process_time() - started
        chance = np.random.default_rng(3)
        spent = [_milliseconds(index, made, question.text, chance) for question in made.questions]
        p50, p99 = np.quantile(spent, [0.5, 0.99])
        count = len(made.passages)
        print(
            f"{count:>8} passages: rules {count / extracted:6.0f}/s, index {count / indexed:6.0f}/s, "
            f"{index.nbytes / count * 100_000 / 1e6:6.0f} MB per 100,000, a question {p50:.2f} / {p99:.2f} ms"
        )


def _milliseconds(index: WalkIndex, made: MultiHopSet, question: str, chance: np.random.Generator) -> float:
    """One walk, from passages of which the first is one that the question needs."""
    needed = next(one.needed for one in made.questions if one.text == question)
    others = chance.integers(0, len(made.passages), CANDIDATES - 1).tolist()
    places = list(dict.fromkeys([needed[0], *others]))
    scores = np.linspace(0.9, 0.4, len(places)).tolist()
    started = time.perf_counter()
    walked(index, made.passages, question, places, scores)
    return (time.perf_counter() - started) * 1000


def print_speed(engine: ExtractionEngine) -> None:
    passages = make("bridge", size=1_000, questions=1).passages
    engine.analyse(passages[:10], None)  # loads the pipeline
    started = time.process_time()
    engine.analyse(passages, None)
    print(f"{engine.name:>8}: {len(passages) / (time.process_time() - started):.0f} passages/s")


def docstrings() -> EvaluationSet:
    """Descriptions of functions by their summary lines: the first passage of each."""
    asked, texts = described()
    first = [next(chunk([Block(text)], 1_500, 0)).text for text in texts]
    questions = [Question(text, {at: 1}) for at, text in enumerate(asked)]
    return EvaluationSet("docstrings", first, questions)


def print_real_sets(extractors: Mapping[str, ExtractionEngine]) -> None:
    """The same on texts that others wrote; the FAQ where it is installed."""
    print_head(extractors)
    print_quality(docstrings(), extractors)
    place = faq.folder()
    if place is None:
        print("perlfaq     not installed: apt install perl-doc")
    else:
        print_quality(faq.load(place), extractors)


def print_head(extractors: Mapping[str, ExtractionEngine]) -> None:
    heads = "".join(f"{head:>8}" for head in ("bm25", "dense", "hybrid", *extractors))
    gains = "".join(f"{f'{name} gains, points':>22}" for name in extractors)
    print(f"{'set':<12}{'measure':<10}{heads}{gains}")


def print_sets(extractors: Mapping[str, ExtractionEngine]) -> None:
    print_head(extractors)
    for style in ("bridge", "chain", "single"):
        print_quality(as_evaluation(style, make(style, seed=11, size=ARTICLES)), extractors)
    for name in SETS:
        print_quality(load(name), extractors)
    for language in LANGUAGES:
        for style in ("bridge", "single"):
            made = make_in(language, style, seed=11)
            print_quality(as_evaluation(f"{language} {style}", made), {"rules": rules()})


def main() -> None:
    sizes, extractors = [size for size in sys.argv[1:] if size.isdigit()], engines()
    if "--cost" not in sys.argv:
        print_real_sets(extractors)
    if "--real" in sys.argv:
        return
    if "--cost" not in sys.argv:
        print_sets(extractors)
    for engine in extractors.values():
        print_speed(engine)
    print_cost([int(size) for size in sizes] or SIZES)


if __name__ == "__main__":
    main()
