"""The settings of documents, which administrators change in the browser."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from builtin_plugins.rag.settings import RagSettings


@pytest.mark.parametrize("field", ["parse_cpu_seconds", "parse_seconds", "ocr_seconds", "max_text_chars"])
def test_limits_that_no_process_can_have(field: str) -> None:
    """A limit of a parser that the operating system can't set would fail every document."""
    wanted: dict[str, Any] = {field: 10**20}
    with pytest.raises(ValidationError) as refused:
        RagSettings(**wanted)
    assert [error["loc"] for error in refused.value.errors()] == [(field,)]
