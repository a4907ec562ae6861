"""Models that are loaded once for all platforms of a test process.

`LoadedOnce` is the plugin `embeddings`: loading takes two seconds of processor time, and the platform of
almost every test that embeds would pay them. Settings of the models have no effect; the tests of the plugin
itself start the installed one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from unittest.mock import patch

from builtin_plugins.embeddings.catalog import MODELS, LocalModel
from builtin_plugins.embeddings.plugin import EmbeddingsPlugin
from builtin_plugins.embeddings.settings import EmbeddingsSettings
from builtin_plugins.rag.answering import languages


def _once(model: LocalModel) -> LocalModel:
    load = cache(lambda: model.load(EmbeddingsSettings()))
    return replace(model, load=lambda _settings, _home=None: load())


class LoadedOnce(EmbeddingsPlugin):
    """Real vectors, at the price of one load."""

    models = tuple(_once(model) for model in MODELS)


@contextmanager
def languages_loaded_once() -> Iterator[None]:
    """The model that tells languages: half a second for each platform that reads a document."""
    load = cache(partial(languages.load_identifier, None))
    with patch.object(languages, "load_identifier", lambda _home: load()):
        yield
