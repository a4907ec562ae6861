"""Tables: sets of questions, runs over them, and a row for each question asked in a configuration.

No document text is stored except what the author of a set wrote into it; generated questions are deleted with
their document.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Boolean, Float, ForeignKey, Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column, relationship

from kernel.sdk import UtcDateTime, json_type, plugin_base, utc_now

Base: Any = plugin_base("evaluation")


class QuestionSet(Base):
    """Questions about one knowledge base."""

    __tablename__ = "evaluation_set"

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    knowledge_base_id: Mapped[str] = mapped_column(String(36), index=True)
    name: Mapped[str] = mapped_column(String(255))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)


class EvaluationQuestion(Base):
    """A question and what is expected of its answer. Ids ascend; `document_id` is its source document.

    One that was made from several documents has `others`: whoever sees it may read all of them.
    """

    __tablename__ = "evaluation_question"
    __table_args__ = {"sqlite_autoincrement": True}

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    set_id: Mapped[str] = mapped_column(ForeignKey(QuestionSet.id, ondelete="CASCADE"), index=True)
    question: Mapped[str] = mapped_column(Text)
    documents: Mapped[Any] = mapped_column(json_type())
    passages: Mapped[Any] = mapped_column(json_type())
    answers: Mapped[Any] = mapped_column(json_type())
    unanswerable: Mapped[bool] = mapped_column(Boolean)
    origin: Mapped[str] = mapped_column(String(16))
    document_id: Mapped[str | None] = mapped_column(String(36), index=True)
    others: Mapped[list[QuestionDocument]] = relationship(lazy="raise", passive_deletes="all")


class QuestionDocument(Base):
    """A further document that a question was made from."""

    __tablename__ = "evaluation_question_document"

    question_id: Mapped[int] = mapped_column(
        ForeignKey(EvaluationQuestion.id, ondelete="CASCADE"), primary_key=True
    )
    document_id: Mapped[str] = mapped_column(String(36), primary_key=True, index=True)


class Run(Base):
    """All questions of a set up to `last_question`, asked in several configurations.

    `choices`, set once the run is done, tells what `auto` should do, by kind of question.
    """

    __tablename__ = "evaluation_run"

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    set_id: Mapped[str] = mapped_column(ForeignKey(QuestionSet.id, ondelete="CASCADE"), index=True)
    knowledge_base_id: Mapped[str] = mapped_column(String(36), index=True)
    account_id: Mapped[int | None] = mapped_column(Integer)
    configurations: Mapped[Any] = mapped_column(json_type())
    last_question: Mapped[int] = mapped_column(Integer)
    status: Mapped[str] = mapped_column(String(16), default="running")
    error: Mapped[str | None] = mapped_column(Text)
    choices: Mapped[Any | None] = mapped_column(json_type())
    job_id: Mapped[str | None] = mapped_column(String(64))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)
    finished_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class Result(Base):
    """One question asked once in one configuration, by its position in the run's list.

    Measures that don't apply to a question are null. `failure` tells why there is no answer.
    """

    __tablename__ = "evaluation_result"

    run_id: Mapped[str] = mapped_column(ForeignKey(Run.id, ondelete="CASCADE"), primary_key=True)
    configuration: Mapped[int] = mapped_column(Integer, primary_key=True)
    question_id: Mapped[int] = mapped_column(
        ForeignKey(EvaluationQuestion.id, ondelete="CASCADE"), primary_key=True, index=True
    )
    kind: Mapped[str] = mapped_column(String(16))
    quality: Mapped[float] = mapped_column(Float)
    ndcg_10: Mapped[float | None] = mapped_column(Float)
    recall_5: Mapped[float | None] = mapped_column(Float)
    mrr: Mapped[float | None] = mapped_column(Float)
    contains: Mapped[float | None] = mapped_column(Float)
    refused_right: Mapped[float | None] = mapped_column(Float)
    refused_wrong: Mapped[float | None] = mapped_column(Float)
    citations_supported: Mapped[float | None] = mapped_column(Float)
    failed: Mapped[float | None] = mapped_column(Float)
    failure: Mapped[str | None] = mapped_column(Text)
    latency_ms: Mapped[float] = mapped_column(Float)
    tokens: Mapped[float] = mapped_column(Float)
    model_calls: Mapped[float] = mapped_column(Float)
