"""B17: tokens/s of the real small model through the whole platform, against its bare server.

python -m tests.benchmarks.local_model
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import aiohttp

from kernel.testing import platforms, somebody
from tests.benchmarks.table import Row, print_table
from tests.fakes.small_model import SmallModel, serving

TOKENS, TURNS = 128, 5
BODY: dict[str, Any] = {
    "model": "smollm2",
    "stream": True,
    "max_tokens": TOKENS,
    "temperature": 0,
    "ignore_eos": True,
    "messages": [{"role": "user", "content": "Tell a long story about a lighthouse."}],
}


async def rate(session: aiohttp.ClientSession, url: str, token: str) -> float:
    """Tokens a second of one streamed answer, from the request to its end."""
    started, pieces = time.perf_counter(), 0
    async with session.post(url, json=BODY, headers={"Authorization": f"Bearer {token}"}) as answer:
        assert answer.status == 200, await answer.text()
        async for line in answer.content:
            if line.startswith(b"data: {"):
                pieces += bool(json.loads(line[6:])["choices"])
    assert pieces >= TOKENS
    return TOKENS / (time.perf_counter() - started)


async def compare(model: SmallModel, folder: Path) -> tuple[float, float]:
    async with platforms(folder) as start:
        running = await start("models", "orchestrator", env=model.env)
        ann = await somebody(running)
        ways = (
            (f"{model.url}/v1/chat/completions", model.key),
            (f"{running.url}/v1/ai/chat/completions", ann.token),
        )
        found: list[list[float]] = [[], []]
        for turn in range(TURNS + 1):
            for way, (url, token) in enumerate(ways):
                figure = await rate(running.session, url, str(token))
                if turn:
                    found[way].append(figure)
    return median(found[0]), median(found[1])


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as model:
        bare, ours = asyncio.run(compare(model, Path(folder) / "home"))
    figure = f"{ours / bare:.3f} ({ours:.1f} against {bare:.1f} tokens/s)"
    print_table(
        [Row("B17", "small model through the platform / bare", figure, "≥ 0.95", ours >= 0.95 * bare)]
    )


if __name__ == "__main__":
    main()
