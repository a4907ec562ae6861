"""Search in the catalog and resolution of dependencies, over HTTP, at several sizes.

`python -m tests.benchmarks.marketplace [search|resolution] [sqlite|postgresql]` (default: all): milliseconds
a request, one after the other, against a platform in this process, with the client's share. Budgets: 20 ms
for 95 of 100 searches of 10,000 listings, and for 95 of 100 resolutions at 5,000 plugins and 25,000 edges.
The most frequent word is in nearly every listing.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from statistics import median, quantiles

from builtin_plugins.dependency_graph.live import EDGES_CHANGED
from builtin_plugins.dependency_graph.models import Edge, State
from builtin_plugins.marketplace.models import Listing
from builtin_plugins.marketplace.services.search import index, name_key
from kernel.sdk import Unit
from kernel.testing import Running, platforms, postgres_database
from tests.benchmarks.search import Texts
from tests.benchmarks.table import Row, print_table

SEARCH_SIZES = (1_000, 3_000, 10_000)
GRAPH_SIZES = ((1_000, 5_000), (5_000, 25_000), (20_000, 100_000))
BUDGETED_PLUGINS = 5_000
BATCH = 500
BUDGET_MS = 20
REQUESTS = 200
WARM = 20

Ask = Callable[[], Awaitable[None]]


class Catalog:
    """Listings with words of a made-up language: 30 in a description, two in a name."""

    def __init__(self) -> None:
        self._texts = Texts()
        self.names: list[str] = []
        self.descriptions: list[str] = []

    def more(self, count: int) -> list[tuple[str, str]]:
        """New listings: name and description."""
        found = []
        for passage in self._texts.passages(count):
            words = passage.split()
            name = f"{words[0]} {words[1]} {len(self.names)}"
            self.names.append(name)
            self.descriptions.append(" ".join(words[2:32]))
            found.append((name, self.descriptions[-1]))
        return found


def _write_listings(unit: Unit, listings: Sequence[tuple[str, str]]) -> list[str]:
    made = [
        Listing(
            id=str(uuid.uuid4()),
            name=name,
            name_key=name_key(name),
            display_name=name.title(),
            description=description,
            author="Ada",
            status="approved",
            current_version="1.0",
        )
        for name, description in listings
    ]
    unit.session.add_all(made)
    unit.session.flush()
    for listing in made:
        index(unit, listing)
    return [listing.id for listing in made]


@asynccontextmanager
async def _platform(dialect: str) -> AsyncIterator[Running]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = stack.enter_context(postgres_database()) if dialect == "postgresql" else None
        async with platforms(folder) as start:
            env = {"DATABASE_URL": url, "RATE_LIMIT_ENABLED": "false", "PLATFORM_STRICT_ANSWERS": "false"}
            yield await start("tenancy", "marketplace", "dependency_graph", env=env)


async def _timed(number: str, label: str, ask: Ask, *, budgeted: bool) -> Row:
    for _ in range(WARM):
        await ask()
    took, worked = [], []
    for _ in range(REQUESTS):
        begun, at_work = time.perf_counter(), time.process_time()
        await ask()
        took.append((time.perf_counter() - begun) * 1000)
        worked.append((time.process_time() - at_work) * 1000)
    cuts, work = quantiles(took, n=100), quantiles(worked, n=100)
    figure = (
        f"{median(took):.1f} ms, 95 of 100 in {cuts[94]:.1f}, longest {max(took):.1f}; "
        f"of processor time {median(worked):.1f}, 95 of 100 in {work[94]:.1f}"
    )
    wanted = f"95 of 100 in {BUDGET_MS}" if budgeted else "—"
    return Row(number, label, figure, wanted, not budgeted or cuts[94] < BUDGET_MS)


async def search(dialect: str) -> list[Row]:
    """Words, beginnings of words, and names with a letter missing."""
    rows: list[Row] = []
    catalog = Catalog()
    async with _platform(dialect) as running:
        for size in SEARCH_SIZES:
            while len(catalog.names) < size:
                await running.platform.database.write(_write_listings, catalog.more(BATCH))
            for kind, question in _questions(catalog, random.Random(7)).items():
                label = f"{dialect}, {size:,} listings: {kind}"
                ask = _asking(running, "/v1/marketplace/plugins/search", question)
                rows.append(await _timed("search", label, ask, budgeted=size == SEARCH_SIZES[-1]))
    return rows


def _questions(catalog: Catalog, chance: random.Random) -> dict[str, Callable[[], str]]:
    return {
        "a word": lambda: _words(catalog, chance)[0],
        "two words": lambda: " ".join(chance.sample(_words(catalog, chance), 2)),
        "beginning": lambda: chance.choice(catalog.names)[:3],
        "a name": lambda: chance.choice(catalog.names),
        "misspelt name": lambda: _misspelt(chance.choice(catalog.names), chance),
    }


def _asking(running: Running, path: str, question: Callable[[], str]) -> Ask:
    async def ask() -> None:
        answer = await running.anonymous.get(path, params={"q": question()})
        assert answer.status == 200

    return ask


def _words(catalog: Catalog, chance: random.Random) -> list[str]:
    return chance.choice(catalog.descriptions).split()


def _misspelt(name: str, chance: random.Random) -> str:
    word = max(name.split()[:2], key=len)
    at = chance.randrange(len(word))
    return f"{word[:at]}{'q' if chance.random() < 0.5 else ''}{word[at + 1 :]}"


def _write_edges(unit: Unit, ids: Sequence[str], count: int) -> None:
    """Edges from each plugin to earlier ones, so that none closes a cycle."""
    chance = random.Random(11)
    pairs: set[tuple[str, str]] = set()
    while len(pairs) < count:
        at = chance.randrange(1, len(ids))
        pairs.add((ids[at], ids[chance.randrange(at)]))
    kinds = ("requires",) * 8 + ("suggests", "conflicts_with")
    for source, target in sorted(pairs):
        kind = chance.choice(kinds)
        versions = ">=0.5,<2" if kind != "conflicts_with" else ">=3"
        edge = Edge(plugin_id=source, depends_on=target, dependency_type=kind, version_constraint=versions)
        unit.session.add(edge)
    unit.session.merge(State(id=1, version=1))
    unit.notify(EDGES_CHANGED, ids[-1])


async def resolution(dialect: str) -> list[Row]:
    """Any plugin, and the one that requires most."""
    rows: list[Row] = []
    for plugins, edges in GRAPH_SIZES:
        catalog, ids = Catalog(), list[str]()
        async with _platform(dialect) as running:
            while len(ids) < plugins:
                ids += await running.platform.database.write(_write_listings, catalog.more(BATCH))
            await running.platform.database.write(_write_edges, ids, edges)
            for kind, among in (("any plugin", ids), ("the last one", ids[-1:])):
                label = f"{dialect}, {plugins:,} plugins, {edges:,} edges: {kind}"
                ask = _resolving(running, among)
                rows.append(await _timed("resolution", label, ask, budgeted=plugins == BUDGETED_PLUGINS))
    return rows


def _resolving(running: Running, among: Sequence[str]) -> Ask:
    chance = random.Random(5)

    async def ask() -> None:
        answer = await running.anonymous.get(f"/v1/graph/dependencies/{chance.choice(among)}")
        assert answer.status == 200

    return ask


async def main(wanted: Sequence[str]) -> None:
    """Run the wanted parts."""
    dialects = [name for name in ("sqlite", "postgresql") if name in wanted] or ["sqlite", "postgresql"]
    parts = [part for part in ("search", "resolution") if part in wanted] or ["search", "resolution"]
    rows: list[Row] = []
    for dialect in dialects:
        rows += await search(dialect) if "search" in parts else []
    rows += await resolution(dialects[0]) if "resolution" in parts else []
    print_table(rows)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
