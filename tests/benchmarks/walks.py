"""How many of the project's files and functions run for one question, upload, webhook and so on, by folder.

    python -m tests.benchmarks.walks [--files WALK]

It starts a platform with all built-in plugins but no model runtime, does each walk once to warm up, and
counts the second one. A file counts if one of its functions runs; the client of the tests does not.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import yaml

from kernel.plugins.loading import installed
from kernel.testing import platforms
from kernel.testing import somebody as make_account
from tests.benchmarks.table import Row, print_table
from tests.builtin_plugins.manifest_webhooks.webhook_support import manifest, send
from tests.builtin_plugins.rag.rag_support import HANDBOOK, ask, make_base, make_pipeline, upload
from tests.builtin_plugins.tenancy.tenancy_support import make_org
from tests.fakes.hash_embeddings import HashEmbeddings

_ROOT = Path(__file__).parents[2]
_OURS = ("kernel", "builtin_plugins", "cli")
_CLIENT = ("kernel", "testing")
_LEFT_OUT = ("embeddings", "oidc", "s3_blobs")  # a model, a provider and a store that aren't here
_BUDGETS = {"question": 70, "question: rag": 25, "upload": 50, "ingestion": 60, "webhook": 50}


@dataclass
class Walk:
    """The code that ran."""

    codes: set[CodeType] = field(default_factory=set)

    def files(self) -> Counter[Path]:
        """The project's files, each with the number of functions that ran."""
        found: Counter[Path] = Counter()
        for code in self.codes:
            path = Path(code.co_filename)
            if path.is_relative_to(_ROOT) and (parts := path.relative_to(_ROOT).parts)[0] in _OURS:
                found[path.relative_to(_ROOT)] += parts[:2] != _CLIENT
        return +found


class Tracer:
    """Notes which functions are called in the main thread, and in threads that start after `install`."""

    def __init__(self) -> None:
        self._walk: Walk | None = None

    def install(self) -> None:
        threading.setprofile(self._note)

    def _note(self, frame: FrameType, event: str, _argument: object) -> None:
        if self._walk is not None and event == "call" and frame.f_code.co_name != "<module>":
            self._walk.codes.add(frame.f_code)

    @contextmanager
    def noted(self) -> Iterator[Walk]:
        self._walk = walk = Walk()
        sys.setprofile(self._note)
        try:
            yield walk
        finally:
            sys.setprofile(None)
            self._walk = None


async def walks(tracer: Tracer, folder: Path) -> dict[str, Walk]:
    manifests = folder / "manifests"
    manifests.mkdir()
    (manifests / "notes.yaml").write_text(yaml.safe_dump(manifest()), encoding="utf-8")
    names = [candidate.name for candidate in installed() if candidate.name not in _LEFT_OUT]
    async with platforms(folder) as start:
        running = await start(*names, HashEmbeddings())
        ann = await make_account(running, role="admin")
        base = await make_base(ann)
        pipeline = await make_pipeline(ann, base)
        organization = await make_org(running, ann)
        number = iter(range(1_000))

        async def send_file() -> None:
            text = f"{HANDBOOK}\n\nEdition {next(number)}."
            answer = await upload(ann, base, "handbook.md", text)
            assert answer.status == 202, answer.body

        async def deliver() -> None:
            answer = await send(running.anonymous, "/notes", {"text": f"The ferry {next(number)} is late."})
            assert answer.status < 300, answer.body
            await running.run_jobs()

        async def get(path: str) -> None:
            answer = await ann.get(path)
            assert answer.status == 200, answer.body

        found: dict[str, Walk] = {}
        for name, work in {
            "upload": send_file,
            "ingestion": running.run_jobs,
            "question": lambda: ask(ann, pipeline, "When is the harbour office open?"),
            "webhook": deliver,
            "organization": lambda: get(f"/v1/organizations/{organization}"),
            "bearer token": lambda: get("/v1/audit"),
        }.items():
            found[name] = await _second(tracer, work, send_file if name == "ingestion" else None)
        return found


async def _second(
    tracer: Tracer, work: Callable[[], Awaitable[Any]], before: Callable[[], Awaitable[Any]] | None
) -> Walk:
    await work()
    if before is not None:
        await before()
    with tracer.noted() as walk:
        await work()
    return walk


def rows(found: dict[str, Walk]) -> list[Row]:
    """Files and functions of each walk, with the folders that have most of them."""
    lines = []
    for name, walk in found.items():
        files = walk.files()
        by_folder = Counter(_folder(path) for path in files)
        parts = ", ".join(f"{folder} {count}" for folder, count in by_folder.most_common())
        lines.append(_row(name, f"{name}: {parts}", len(files), sum(files.values())))
        if name == "question":
            own = {path: count for path, count in files.items() if _folder(path) == "rag"}
            lines.append(_row("question: rag", "of these, rag's own", len(own), sum(own.values())))
    return lines


def _row(name: str, what: str, files: int, functions: int) -> Row:
    most = _BUDGETS.get(name)
    wanted = f"≤ {most} files" if most else "—"
    return Row("walk", what, f"{files} files, {functions} functions", wanted, most is None or files <= most)


def _folder(path: Path) -> str:
    return path.parts[1] if path.parts[0] == "builtin_plugins" else path.parts[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", metavar="WALK", help="list the files of this walk")
    arguments = parser.parse_args()
    tracer = Tracer()
    tracer.install()
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(walks(tracer, Path(folder)))
    if arguments.files:
        for path, functions in sorted(found[arguments.files].files().items()):
            print(f"{functions:4} {path}")
    else:
        print_table(rows(found))


if __name__ == "__main__":
    main()
