"""The platform's own format of errors, on which formats of other protocols build."""

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


def error_response(refused: PlatformError, **more: Any) -> web.Response:
    """A response with ``{"detail", "code"}``, the body of every error, and what a protocol adds to it."""
    body = {"detail": refused.detail, "code": refused.code, **more}
    return json_response(json.dumps(body, default=str).encode(), refused.status, refused.headers)


def _plain(_ctx: Context, error: PlatformError) -> web.Response:
    return error_response(error)


PLAIN_ERRORS = ErrorFormat(_plain, ErrorBody, HTTPValidationError)
