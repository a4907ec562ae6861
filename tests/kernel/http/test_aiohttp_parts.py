"""The private parts of aiohttp that are used here, each by its name: a release without one fails here first.

`pyproject.toml` pins the release line that was tested.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.web_protocol import RequestHandler

ROOT = Path(__file__).parents[3]

PARTS: dict[str, tuple[str, frozenset[str]]] = {
    "BodyResponse": (
        "kernel/http/wire.py",
        frozenset(
            {
                *("_body", "_body_length", "_chunked", "_compression", "_cookies", "_eof_sent", "_headers"),
                *("_keep_alive", "_payload_writer", "_reason", "_req", "_status"),
            }
        ),
    ),
    "Request": ("kernel/http/wire.py", frozenset({"_prepare_hook"})),
    "_ImpatientHandler": ("kernel/server.py", frozenset({"_current_request", "_messages"})),
    "_Server": ("kernel/server.py", frozenset({"_kwargs", "_loop"})),
}


async def aiohttp_base(name: str) -> Any:
    """The aiohttp object whose attributes are checked."""
    if name == "_Server":
        return web.Server(lambda _request: web.Response())  # type: ignore[arg-type,return-value]
    return {"BodyResponse": web.Response(body=b"x"), "Request": web.Request}.get(name, RequestHandler)


@pytest.mark.parametrize("name", PARTS)
async def test_each_part_is_there(name: str) -> None:
    """In the release that is installed."""
    base = await aiohttp_base(name)
    assert {part for part in PARTS[name][1] if not hasattr(base, part)} == set()


@pytest.mark.parametrize("name", PARTS)
async def test_no_part_is_used_unnamed(name: str) -> None:
    """The list above is exactly what the classes use."""
    path, parts = PARTS[name]
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    [found] = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == name]
    base = await aiohttp_base(name)
    used = {
        node.attr
        for node in ast.walk(found)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    }
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    overridden = {node.name for node in found.body if isinstance(node, functions)}
    private = {name for name in used | overridden if name.startswith("_") and not name.startswith("__")}
    assert {name for name in private if hasattr(base, name)} == parts
