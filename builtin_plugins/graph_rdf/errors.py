"""Errors of queries over RDF."""

from __future__ import annotations

from kernel.sdk import BadRequest, TooManyRequests


class QueryTooExpensive(BadRequest):
    code = "query_too_expensive"
    default_detail = "The query needs more than this server allows; narrow it"


class TooManyQueries(TooManyRequests):
    code = "too_many_queries"
    default_detail = (
        "Too many queries are already running or waiting; try again when some of yours have finished"
    )
