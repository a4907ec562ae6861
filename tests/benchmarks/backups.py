"""Prints what a backup of many passages costs: time and size, a second one, reading every byte, a restore.

`python -m tests.benchmarks.backups [passages]` (default 100,000, in documents of 100), on SQLite. While the
first backup is made, a client writes as fast as it can; the slowest of its writes is printed.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np

from builtin_plugins.platform_ops.backup.operator import restore
from builtin_plugins.platform_ops.backup.service import archives_of, back_up
from builtin_plugins.vectors.api import VECTORS, Point
from kernel.sdk import Platform, Unit
from kernel.testing import platforms

DIMENSION = 384
OF_A_DOCUMENT = 100
WORDS = np.random.default_rng(7).choice(list("abcdefghijklmnopqrstuvwxyz"), (4000, 7))
PLUGINS = ("platform_ops", "rag")


def passage(generator: np.random.Generator) -> str:
    """Some 900 characters."""
    return " ".join("".join(word) for word in WORDS[generator.integers(0, len(WORDS), 112)])


async def fill(platform: Platform, passages: int) -> None:
    """Documents' originals and points."""
    generator = np.random.default_rng(1)

    async def body(content: bytes) -> AsyncIterator[bytes]:
        yield content

    for number in range(passages // OF_A_DOCUMENT):
        vectors = generator.standard_normal((OF_A_DOCUMENT, DIMENSION)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        group = f"document-{number}"
        points = [
            Point(f"{group}-{at}", group, at, passage(generator), vector, {"page": at})
            for at, vector in enumerate(vectors)
        ]
        staged = await platform.blobs.stage(body("\n".join(p.text for p in points).encode()), 1 << 30)

        def write(unit: Unit, points: list[Point] = points, group: str = group, staged=staged) -> None:  # type: ignore[no-untyped-def]
            platform.resource(VECTORS).ensure(unit, "rag:bench", DIMENSION, "bench")
            platform.resource(VECTORS).stage(unit, "rag:bench", points)
            platform.resource(VECTORS).publish(unit, "rag:bench", group)
            platform.blobs.keep(unit, staged, f"bench:{group}")

        await platform.database.write(write)


async def slowest_write(platform: Platform, done: asyncio.Event) -> float:
    """Seconds of the slowest of many small writes."""
    worst = 0.0
    while not done.is_set():
        started = time.perf_counter()
        await platform.database.write(lambda unit: unit.lock("bench"))
        worst = max(worst, time.perf_counter() - started)
        await asyncio.sleep(0.002)
    return worst


async def main(passages: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = {"PLATFORM_BACKUP_TO": f"{folder}/store"}
        async with platforms(Path(folder) / "first") as start:
            platform = (await start(*PLUGINS, env=store)).platform
            started = time.perf_counter()
            await fill(platform, passages)
            print(f"{passages} passages written in {time.perf_counter() - started:.1f} s")
            database = await asyncio.to_thread(Path(folder, "first", "platform.db").stat)
            done = asyncio.Event()
            writing = asyncio.create_task(slowest_write(platform, done))
            started = time.perf_counter()
            name, manifest = await back_up(platform, "benchmark")
            took = time.perf_counter() - started
            done.set()
            size = manifest.stored_bytes / 1e6
            print(f"first backup: {took:.1f} s, {size:.0f} MB (database {database.st_size / 1e6:.0f} MB)")
            print(f"slowest write meanwhile: {await writing * 1000:.0f} ms")
            started = time.perf_counter()
            await back_up(platform, "benchmark")
            print(f"second backup, nothing changed: {time.perf_counter() - started:.1f} s")
            archives = archives_of(platform)
            archives.objects.load_known()
            started = time.perf_counter()
            await asyncio.to_thread(archives.verify, name)
            print(f"verify: {time.perf_counter() - started:.1f} s")
        async with platforms(Path(folder) / "second") as start:
            tool = await start(*PLUGINS, role="tool", env=store, migrated=False)
            started = time.perf_counter()
            await restore(tool.platform, name)
            print(f"restore: {time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))
