"""Questions from files: JSON Lines, or CSV with a header. Lists in CSV are separated by ``|``."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any, Literal

from pydantic import ValidationError

from builtin_plugins.evaluation.schemas import MOST_QUESTIONS, QuestionIn
from kernel.sdk import BadRequest

Format = Literal["jsonl", "csv"]
_LISTS = ("documents", "passages", "answers")
_TRUE = {"1": True, "true": True, "yes": True, "": False, "0": False, "false": False, "no": False}


def read_questions(raw: bytes, format: Format) -> list[QuestionIn]:
    """The questions of a file. Raises BadRequest, naming the line and what is wrong in it."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadRequest("The file is not UTF-8 text") from None
    questions = []
    for line, entry in _json_lines(text) if format == "jsonl" else _csv_lines(text):
        try:
            questions.append(QuestionIn.model_validate(entry))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(str(part) for part in first["loc"]) or "question"
            raise BadRequest(f"Line {line}, {place}: {first['msg']}") from None
        if len(questions) > MOST_QUESTIONS:
            raise BadRequest(f"A set has at most {MOST_QUESTIONS} questions")
    if not questions:
        raise BadRequest("The file has no questions")
    return questions


def _json_lines(text: str) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                entry = json.loads(line)
            except (ValueError, RecursionError):
                raise BadRequest(f"Line {number} is not JSON") from None
            if isinstance(entry, dict):
                entry |= {name: [entry[name]] for name in _LISTS if isinstance(entry.get(name), str)}
            yield number, entry


def _csv_lines(text: str) -> Iterator[tuple[int, Any]]:
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        for row in reader:
            yield reader.line_num, {name: _cell(name, value) for name, value in row.items()}
    except csv.Error as error:
        raise BadRequest(f"Line {reader.line_num} is not CSV: {error}") from None


def _cell(name: str | None, value: Any) -> Any:
    if name in _LISTS:
        return [part.strip() for part in (value or "").split("|") if part.strip()]
    if name == "unanswerable":
        return _TRUE.get((value or "").strip().lower(), value)
    return value
