"""The model that tells languages, unpacked once for all processes."""

from __future__ import annotations

from pathlib import Path

import py3langid.langid
import pytest

from builtin_plugins.rag.answering.languages import load_identifier

TEXTS = (
    "The observatory was founded in 1897.",
    "Die Brücke hat zwölf Bögen.",
    "天文台建于一八九七年。",
    "E42",
)


def test_a_kept_model_tells_the_same_languages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = py3langid.langid.LanguageIdentifier.from_model_file(
        py3langid.langid.MODEL_FILE, norm_probs=True
    )
    load_identifier(tmp_path)
    monkeypatch.delattr("py3langid.modelio.load_model")
    kept = load_identifier(tmp_path)
    assert [kept.rank(text) for text in TEXTS] == [library.rank(text) for text in TEXTS]
