"""Error formats: the platform's, and one in which OpenAI's clients find the message, too."""

from __future__ import annotations

import json
from typing import Any

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from kernel.errors import PlatformError
from kernel.http.context import Context, ErrorFormat
from kernel.http.responses import json_response


class ErrorBody(BaseModel):
    """Body of every error except 422."""

    detail: Any = Field(description="What went wrong, in plain text; an object on a few routes.")
    code: str = Field(description="Stable code for programs, in snake_case.")


class ValidationProblem(BaseModel):
    """One problem of a 422."""

    model_config = ConfigDict(extra="allow")

    type: str
    loc: list[str | int]
    msg: str
    input: Any = None


class HTTPValidationError(BaseModel):
    """Body of a 422: one entry for each problem."""

    detail: list[ValidationProblem]
    code: str = "validation_error"


class OpenAIError(BaseModel):
    """An error as OpenAI's clients read it."""

    message: str
    type: str = Field(description="Which kind of error it is: the request's, the caller's or the server's.")
    param: str | None = Field(description="The field of the body that is wrong, if it is one.")
    code: str


class OpenAIErrorBody(ErrorBody):
    """Body of an error of a route that OpenAI's clients call."""

    error: OpenAIError


class OpenAIValidationError(HTTPValidationError):
    """Body of a 422 of a route that OpenAI's clients call."""

    error: OpenAIError


def error_response(refused: PlatformError, **more: Any) -> web.Response:
    """A response with ``{"detail", "code"}``, the body of every error, and what a protocol adds to it."""
    body = {"detail": refused.detail, "code": refused.code, **more}
    return json_response(json.dumps(body, default=str).encode(), refused.status, refused.headers)


def _plain(_ctx: Context, error: PlatformError) -> web.Response:
    return error_response(error)


def _openai(_ctx: Context, error: PlatformError) -> web.Response:
    return error_response(error, error=error.as_openai())


PLAIN_ERRORS = ErrorFormat(_plain, ErrorBody, HTTPValidationError)
OPENAI_ERRORS = ErrorFormat(_openai, OpenAIErrorBody, OpenAIValidationError, of_family=True)
"""Adds `error`, the only place where OpenAI's clients look for the message."""
