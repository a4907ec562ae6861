"""Figures of knowledge bases per day: the questions that people ask, and what the documents take up."""

from __future__ import annotations

from datetime import date

from pydantic import BaseModel, Field

from kernel.sdk import example


class QuestionFiguresQuery(BaseModel):
    """Which figures to show."""

    model_config = example(days=30)

    days: int = Field(30, ge=1, le=400, description="How many days, including today (UTC).")
    knowledge_base_id: str | None = Field(
        None, max_length=36, description="Only those of this knowledge base, which the caller may change."
    )


class QuestionCounts(BaseModel):
    """Questions and ratings of answers. A question to several knowledge bases counts in each."""

    questions: int = Field(description="Questions that got an answer or a refusal; not those that failed.")
    refused: int = Field(description="Of these, those that the documents didn't answer.")
    up: int = Field(description="Answers with a thumb up, on the day of the question.")
    down: int


class QuestionDayOut(QuestionCounts):
    """One day (UTC)."""

    day: date


class StorageDayOut(BaseModel):
    """What documents took up at the end of a day (UTC), or take up today."""

    day: date
    size_bytes: int
    files: int = Field(description="How many files, earlier versions included.")


class QuestionFigures(QuestionCounts):
    """The sum, the days with a question or a rating, and what is stored; the latest first."""

    items: list[QuestionDayOut]
    storage: list[StorageDayOut] = Field(
        description="Today, and the recorded days. Knowledge bases in the trash are not counted."
    )
