"""Bodies and answers of the routes."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from builtin_plugins.rag import api as rag
from kernel.sdk import READABLE, Body, PageQuery, example

MOST_QUESTIONS = 2000
Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2000)]
SetName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=255), READABLE]
Lines = Annotated[list[Line], Field(max_length=100)]
Status = Literal["running", "done", "failed"]


class QuestionIn(BaseModel):
    """A question, and what is expected of its answer."""

    model_config = ConfigDict(extra="forbid")

    question: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=8000)]
    documents: Lines = Field([], description="Names or ids of documents that should be found.")
    passages: Lines = Field([], description="Ids of passages that should be found, or text from them.")
    answers: Lines = Field([], description="The answer should contain one of these.")
    unanswerable: bool = Field(False, description="The right answer is a refusal.")

    @model_validator(mode="after")
    def _expects_something(self) -> QuestionIn:
        expected = bool(self.documents or self.passages or self.answers)
        if expected == self.unanswerable:
            raise ValueError(
                "give expected documents, passages or answers, or unanswerable: true, but not both"
            )
        return self


class SetCreate(Body):
    """A new set."""

    model_config = example(
        knowledge_base_id="3f0c9a52-7d0e-4b1c-9a65-0c1d2e3f4a5b",
        name="Handbook",
        questions=[{"question": "How much may a hotel cost?", "answers": ["130 EUR"]}],
    )

    knowledge_base_id: Annotated[str, Field(max_length=36)]
    name: SetName
    questions: list[QuestionIn] = Field([], max_length=MOST_QUESTIONS)


class SetOut(BaseModel):
    """A set, and how many questions it has."""

    id: str
    knowledge_base_id: str
    name: str
    question_count: int
    created_at: datetime


class QuestionOut(BaseModel):
    """A question of a set."""

    model_config = ConfigDict(from_attributes=True)

    id: int
    question: str
    documents: list[str]
    passages: list[str]
    answers: list[str]
    unanswerable: bool
    origin: Literal["uploaded", "generated", "rated"]


class OfBase(PageQuery):
    """Paging over what belongs to one knowledge base, or to all that the caller sees."""

    knowledge_base_id: Annotated[str, Field(max_length=36)] | None = None


class Generate(Body):
    """How many questions to make from the documents, and whether a model makes them."""

    model_config = example(limit=50)

    limit: int = Field(50, ge=1, le=500)
    with_model: bool = Field(
        False, description="Ask the model runtime for questions, one passage at a time; rules make the rest."
    )
    llm_model: Annotated[str, Field(max_length=255)] | None = None


class Added(BaseModel):
    """How many questions were added; those that the set already had were skipped."""

    added: int
    question_count: int


class Generated(Added):
    """How many questions were made and added."""

    degraded: list[str] | None = Field(description="What was requested but could not be done.")


class CandidateOut(BaseModel):
    """A question that was asked in a conversation or a published chat, and rated."""

    turn_id: int
    question: str
    answer: str
    rating: Literal["up", "down"]
    comment: str | None = Field(None, description="Why it was rated so.")
    passages: list[str] = Field(description="Ids of the passages that the answer cites.")
    documents: list[str] = Field(description="Ids of their documents.")
    asked_at: datetime


class Acceptance(BaseModel):
    """A candidate, and what is expected of its answer; by default the passages that a good answer cited."""

    model_config = ConfigDict(extra="forbid")

    turn_id: int
    documents: Lines = []
    passages: Lines = []
    answers: Lines = []
    unanswerable: bool = False

    @property
    def expects(self) -> bool:
        """Whether it says what is expected."""
        return bool(self.documents or self.passages or self.answers or self.unanswerable)

    @model_validator(mode="after")
    def _not_both(self) -> Acceptance:
        if self.unanswerable and (self.documents or self.passages or self.answers):
            raise ValueError("give what is expected, or unanswerable: true, but not both")
        return self


class Accepted(Body):
    """Candidates to add to the set."""

    model_config = example(candidates=[{"turn_id": 7, "answers": ["130 EUR"]}])

    candidates: Annotated[list[Acceptance], Field(min_length=1, max_length=500)]


class Configuration(BaseModel):
    """A way to ask."""

    model_config = ConfigDict(extra="forbid")

    method: Annotated[str, Field(min_length=1, max_length=32)] = "standard"
    hybrid: bool = True
    parent_context: bool = False
    rerank: bool = False
    top_k: int = Field(10, ge=1, le=100)
    metadata_filter: dict[str, Any] | None = Field(
        None, description="Ask only the documents that it leaves; the same grammar as that of a question."
    )

    @property
    def ask_configuration(self) -> rag.AskConfiguration:
        """In the words of the hook."""
        return rag.AskConfiguration(**self.model_dump(exclude={"metadata_filter"}))

    @property
    def label(self) -> str:
        """A short name, for tables."""
        parts = [self.method, "hybrid" if self.hybrid else "dense"]
        added = (("parent", self.parent_context), ("rerank", self.rerank), ("filter", self.metadata_filter))
        parts += [name for name, on in added if on]
        return " ".join([*parts, f"k{self.top_k}"])


class RunCreate(Body):
    """A run: each question of the set is asked in each configuration."""

    model_config = example(
        set_id="3f0c9a52-7d0e-4b1c-9a65-0c1d2e3f4a5b",
        configurations=[{"method": "standard"}, {"method": "standard", "rerank": True}],
    )

    set_id: Annotated[str, Field(max_length=36)]
    configurations: list[Configuration] = Field(
        default_factory=lambda: [Configuration()], min_length=1, max_length=24
    )

    @model_validator(mode="after")
    def _each_once(self) -> RunCreate:
        if any(one in self.configurations[:at] for at, one in enumerate(self.configurations)):
            raise ValueError("list each configuration only once")
        return self


class Measure(BaseModel):
    """A mean with its 95 % bootstrap interval, over the questions to which it applies."""

    mean: float
    low: float
    high: float
    questions: int


class Summary(BaseModel):
    """What a run measured in one configuration."""

    configuration: Configuration
    label: str
    asked: int
    measures: dict[str, Measure] = Field(
        description="quality, ndcg@10, recall@5, mrr, contains, refused_right, refused_wrong, "
        "citations_supported, failed, latency_ms, tokens, model_calls."
    )
    failures: dict[str, int] = Field(description="Why answers failed, and how many.")


class RunOut(BaseModel):
    """A run."""

    id: str
    set_id: str
    knowledge_base_id: str
    status: Status
    error: str | None
    job_id: str | None = Field(description="Follow it at `/v1/jobs/{job_id}`.")
    done: int
    total: int
    created_at: datetime
    finished_at: datetime | None


class RunDetail(RunOut):
    """A run with what it has measured so far."""

    summaries: list[Summary]
    choices: dict[str, Any] | None = Field(description="What `auto` does for each kind of question.")


class ResultQuery(PageQuery):
    """Which results."""

    configuration: int = Field(0, ge=0, le=23, description="Position in the run's list of configurations.")


class ResultOut(BaseModel):
    """The measures of one question."""

    question_id: int
    question: str
    kind: str
    values: dict[str, float | None] = Field(description="Measures that don't apply to the question are null.")
    failure: str | None = Field(description="Why the answer failed.")


class CompareQuery(BaseModel):
    """What to compare a configuration of the run with."""

    other: Annotated[str, Field(max_length=36)] = Field(
        ..., alias="with", description="The earlier run; the same one to compare two of its configurations."
    )
    configuration: int = Field(0, ge=0, le=23, description="Position in the run's list of configurations.")
    other_configuration: int = Field(
        0, ge=0, le=23, description="Position in the other run's list of configurations."
    )


class Difference(BaseModel):
    """This run minus the other, over the questions that both have asked."""

    difference: float
    low: float
    high: float
    p: float = Field(description="Two-sided paired permutation test; below 0.05 is significant.")
    questions: int


class Worse(BaseModel):
    """A question that got worse, side by side."""

    question: str
    before: dict[str, float | None]
    now: dict[str, float | None]


class Comparison(BaseModel):
    """Two runs, compared."""

    configuration: Configuration
    other_configuration: Configuration
    differences: dict[str, Difference]
    worse: list[Worse] = Field(description="The 50 questions whose quality fell most.")
