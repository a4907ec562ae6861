"""B21: searches and whole answers over HTTP, one question at a time, 10,000 passages, for both local models.

python -m tests.benchmarks.asking
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import aiohttp
import uvloop

from kernel.boot import open_platform
from kernel.gateway.app import gateway_app
from kernel.process.server import Listener, bind
from kernel.settings.loading import SettingsLoader
from kernel.testing import candidates_of
from tests.benchmarks.query import PLUGINS, Bench, served, timed
from tests.benchmarks.table import Row, print_table

PASSAGES = 10_000
BUDGETS = {"all-minilm": 15, "multilingual-e5-small": 20}
ANSWER_BUDGET = 50


async def rows_of(model: str, budget: int) -> list[Row]:
    """A platform of its own for each model: its memory and its engine are not shared."""
    with tempfile.TemporaryDirectory() as name:
        loader = SettingsLoader(served(Path(name)))
        async with open_platform(loader, role="api", candidates=candidates_of(*PLUGINS)) as platform:
            listener = Listener(gateway_app(platform), patience=10, grace=1)
            await listener.start(bind("127.0.0.1", 0))
            async with aiohttp.ClientSession(f"http://127.0.0.1:{listener.port}") as session:
                bench = Bench(platform, session, model)
                await bench.prepare()
                await bench.fill(PASSAGES)
                found = await timings(bench, model, budget)
            await listener.stop()
    return found


async def timings(bench: Bench, model: str, budget: int) -> list[Row]:
    async def search(number: int) -> None:
        path = f"/v1/rag/knowledge-bases/{bench.base}/search"
        await bench.post(path, {"question": bench.question(number)})

    rows = []
    asked = (
        ("search", search, budget),
        ("extractive answer", bench.ask, ANSWER_BUDGET),
        ("extractive answer, asked again", bench.ask, ANSWER_BUDGET),
    )
    for what, call, most in asked:
        for number in range(3):
            await call(-1 - number)
        p50 = await timed(call, 60)
        rows.append(Row("B21", f"{what}, {model}, p50", f"{p50:.1f} ms", f"<= {most} ms", p50 <= most))
    return rows


async def main() -> None:
    print_table([row for model, budget in BUDGETS.items() for row in await rows_of(model, budget)])


if __name__ == "__main__":
    uvloop.run(main())
