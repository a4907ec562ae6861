"""JSON values one after the other, in lines or not."""

from __future__ import annotations

from pathlib import Path

import pytest

from builtin_plugins.documents.blocks import UnparsableDocument
from builtin_plugins.documents.detection import detect_media_type
from builtin_plugins.documents.text import from_json


def written(folder: Path, source: str) -> Path:
    path = folder / "values"
    path.write_text(source)
    return path


@pytest.mark.parametrize(
    "source",
    ['{"a": 1}{"a": 2} {"a": 3}', '{\n "a": 1\n}\n{\n "a": 2\n}\n{"a": 3}', '{"a": 1}\n{"a":\n2}{"a": 3}\n'],
)
def test_json_values_in_a_row(tmp_path: Path, source: str) -> None:
    assert detect_media_type(written(tmp_path, source)) == "application/x-ndjson"
    assert [block.text for block in from_json.parse_lines(tmp_path / "values")] == ["a: 1", "a: 2", "a: 3"]
    with pytest.raises(UnparsableDocument) as caught:
        list(from_json.parse_lines(written(tmp_path, source + "{oops")))
    assert caught.value.code == "corrupt"
