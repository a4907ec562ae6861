"""The kernel names no capability: no built-in plugin, no service, none of their nouns.

Identifiers, strings and comments count. What kernel code needs of a capability, it asks by a hook, or the
plugin declares it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from kernel.gateway.services import GROUP as SERVICES
from kernel.plugins.loading import GROUP as PLUGINS
from kernel.version import DISTRIBUTION

ROOT = Path(__file__).parents[2]
NOUNS = {
    *("knowledge", "pipeline", "passage", "graph", "sparql", "ontology", "embedding", "rag", "raptor"),
    *("license", "licence", "listing", "marketplace", "orchestrator", "conversation", "evaluation"),
    *("speech", "tts", "stt", "webhook", "manifest", "mcp", "oidc", "tenancy"),
}
# Each with its reason; a file may lose its words, and no other file may have any.
EXCEPTIONS = {
    "kernel/plugins/loading.py": {"graph"},  # of the plugins' requirements, for their order
    "kernel/http/wire.py": {"mcp"},  # a header of a protocol that browsers may read
    # Vector search is still in the kernel.
    "kernel/stores/fusion.py": {"evaluation"},
    "kernel/stores/pgvector.py": {"graph", "embedding"},
    "kernel/stores/pgvector_graphs.py": {"graph", "embedding"},
    "kernel/stores/pgvector_search.py": {"graph", "embedding"},
    "kernel/stores/pgvector_setup.py": {"embedding"},
    "kernel/stores/protocols.py": {"embedding"},
}


def names() -> set[str]:
    """The names of the platform's own plugins and services that are no ordinary words."""
    points = metadata.distribution(DISTRIBUTION).entry_points
    found = {point.name for group in (PLUGINS, SERVICES) for point in points.select(group=group)}
    return {name for name in found if re.search(r"[_-]", name)}


def words(text: str) -> Iterator[str]:
    """The nouns of a text, in the singular, whether it writes them `one_two`, `OneTwo` or apart."""
    for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", text):
        noun = word.lower().removesuffix("s")
        if word.lower() in NOUNS or noun in NOUNS:
            yield word.lower() if word.lower() in NOUNS else noun


def sources() -> dict[str, str]:
    """The kernel without what tests import, and without the libraries that know nothing of it."""
    files = (ROOT / "kernel").rglob("*.py")
    shown = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in files}
    return {
        name: text for name, text in shown.items() if not name.startswith(("kernel/testing", "kernel/libs"))
    }


def test_no_nouns_of_capabilities() -> None:
    found = {name: set(words(text)) - EXCEPTIONS.get(name, set()) for name, text in sources().items()}
    assert {name: nouns for name, nouns in found.items() if nouns} == {}


def test_no_names_of_plugins_and_services() -> None:
    named = re.compile(rf"(?<![\w-])({'|'.join(sorted(names()))})(?![\w-])")
    found = {name: set(named.findall(text)) for name, text in sources().items()}
    assert {name: known for name, known in found.items() if known} == {}


@pytest.mark.parametrize("text", ["rag_pipelines", "RagSource", "# of knowledge bases", '"TTS"', "webhooks"])
def test_a_noun_is_seen(text: str) -> None:
    assert list(words(text))


@pytest.mark.parametrize("text", ["storage", "fragment", "paragraphs", "models", "drag"])
def test_parts_of_words_are_none(text: str) -> None:
    assert not list(words(text))
