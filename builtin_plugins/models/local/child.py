"""The child process that serves one GGUF file: llama.cpp's own HTTP server, on the loopback interface.

Its standard input is a JSON object (`ServerOptions`). Once the model is loaded, it writes the address of the
server to the named pipe ``ready``. It ends when killed, or with its parent.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any, Final, TypedDict

from builtin_plugins.models.local.gguf import metadata
from builtin_plugins.models.local.templates import CHATML_WITH_TOOLS, is_plain_chatml

_NICER: Final = 5
_QUIET: Final = 1
_POOLED: Final = "pooling_type"


class ServerOptions(TypedDict):
    """What to serve, and how. ``threads`` compute; ``parallel`` answers share ``context`` tokens."""

    path: str
    name: str
    key: str
    ready: str
    threads: int
    context: int
    parallel: int


def parameters(options: ServerOptions) -> Any:
    """llama.cpp's parameters: no web page, no listing of prompts, nothing kept of requests."""
    from xllamacpp import CommonParams

    params: Any = CommonParams()
    params.model.path = options["path"]
    params.model_alias = {options["name"]}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [options["key"]]
    params.ui = params.endpoint_slots = params.endpoint_props = params.warmup = params.fit_params = False
    params.verbosity = _QUIET
    params.cache_ram_mib = 0
    for processor in (params.cpuparams, params.cpuparams_batch):
        processor.n_threads = options["threads"]
        processor.poll = 0  # waiting threads sleep: spinning ones make a busy machine ten times slower
    _fit(params, options, metadata(options["path"]))
    return params


def _fit(params: Any, options: ServerOptions, keys: dict[str, Any]) -> None:
    """Parameters that depend on the model: its longest context, whether it embeds, tools in its template."""
    architecture = keys.get("general.architecture", "")
    trained = keys.get(f"{architecture}.context_length")
    params.n_ctx = min(options["context"], trained) if isinstance(trained, int) else options["context"]
    params.n_parallel = options["parallel"]
    params.kv_unified = True
    if f"{architecture}.{_POOLED}" in keys:
        params.embedding = True
        params.n_ubatch = params.n_batch = min(params.n_ctx, 2_048)
    if is_plain_chatml(str(keys.get("tokenizer.chat_template", ""))):
        params.chat_template = CHATML_WITH_TOOLS


def main() -> None:
    """Serve until this process ends."""
    options: ServerOptions = json.load(sys.stdin)
    os.nice(_NICER)
    from xllamacpp import Server

    server = Server(parameters(options))
    with Path(os.devnull).open("wb") as nowhere:  # its output would fill the pipe in the long run
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    Path(options["ready"]).write_text(server.listening_address, encoding="ascii")
    threading.Event().wait()


if __name__ == "__main__":
    main()
