"""Combines the metrics of several API processes: a scrape reaches one of them and gets the sum of all.

Each process offers its figures on a unix socket in `PLATFORM_HOME/run`, named after the parent that `serve`
started; the process that is asked reads its siblings' figures and adds them up.

The price: figures live only as long as their process. When one dies, its share leaves the sum; Prometheus
takes that for a reset of the whole counter, so `rate()` over that moment is too high. Keeping the figures of
dead processes would need a place that outlives them all.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from prometheus_client import generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from kernel.sdk import Platform, ResourceKey

log = logging.getLogger("platform.metrics")

_PATIENCE = 2.0  # a sibling may have to take readings first
_LONGEST_ADDRESS = 100  # bytes; the system's limit is 104 on some, 108 on others
_SUMMED = ("counter", "histogram", "summary")


SHARED_METRICS: ResourceKey[None] = ResourceKey("platform_ops.shared_metrics")


@asynccontextmanager
async def open_shared_metrics(platform: Platform) -> AsyncIterator[None]:
    """If several processes share the port, let a scrape of this one answer for all with the same parent.

    If no socket can be made, that is logged, and each process answers for itself.
    """
    if platform.settings.workers == 1:
        yield
        return
    siblings = Siblings(platform, _folder(platform.settings.home))
    try:
        server = await siblings.listen()
    except OSError as error:
        log.warning("each API process reports its own metrics only: %s", error)
        yield
        return
    platform.metrics.gather = siblings.gather
    try:
        yield
    finally:
        platform.metrics.gather = None
        siblings.own.unlink(missing_ok=True)
        server.close()


class Siblings:
    """The API processes of one `serve`, found by their sockets."""

    def __init__(self, platform: Platform, folder: Path) -> None:
        self._metrics = platform.metrics
        self._folder = folder
        self._group = f"metrics-{os.getppid()}-"
        self.own = folder / f"{self._group}{os.getpid()}"

    async def listen(self) -> asyncio.Server:
        """Offer this process's figures on a socket that only its owner can open. Raises OSError."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self._folder.lstat().st_uid != os.geteuid():  # somebody else's, in a temporary folder
            raise PermissionError(f"{self._folder} belongs to another user")
        self.own.unlink(missing_ok=True)
        server = await asyncio.start_unix_server(self._answer, self.own)
        self.own.chmod(0o600)
        return server

    async def gather(self) -> bytes:
        """The sum of all processes' figures, without those that do not answer."""
        paths = [path for path in self._folder.glob(f"{self._group}*") if path != self.own]
        others = await asyncio.gather(*(self._ask(path) for path in paths))
        texts = [self._metrics.render(), *(text for text in others if text is not None)]
        return await asyncio.to_thread(add_up, texts)

    async def _answer(self, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._metrics.refresh()
            writer.write(self._metrics.render())
            await writer.drain()
        except ConnectionError:
            log.info("another process stopped reading the metrics")
        finally:
            writer.close()

    async def _ask(self, path: Path) -> bytes | None:
        try:
            async with asyncio.timeout(_PATIENCE):
                reader, writer = await asyncio.open_unix_connection(path)
                try:
                    return await reader.read()
                finally:
                    writer.close()
        except (ConnectionRefusedError, FileNotFoundError):
            _forget(path)
            log.warning("metrics do not include process %s, which has ended", _process(path))
        except (OSError, TimeoutError) as error:
            log.warning("metrics do not include process %s: %s", _process(path), type(error).__name__)
        return None


def _forget(path: Path) -> None:
    """Remove a dead process's socket; its successor has its own."""
    path.unlink(missing_ok=True)


def _process(path: Path) -> str:
    return path.name.rpartition("-")[2]


class _Families(Collector):
    """Families with a registry's interface."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        yield from self._families


def add_up(texts: Sequence[bytes]) -> bytes:
    """Combine several processes' metrics into one text.

    Counters, histograms, summaries and gauges called ``…_in_progress`` are summed. Of other gauges and
    untyped metrics, the largest value is taken, as every process reports the same platform-wide figure.
    """
    families: dict[str, Metric] = {}
    values: dict[str, dict[tuple[str, tuple[tuple[str, str], ...]], float]] = {}
    for text in texts:
        for family in text_string_to_metric_families(text.decode()):
            families.setdefault(family.name, Metric(family.name, family.documentation, family.type))
            totals = values.setdefault(family.name, {})
            summed = family.type in _SUMMED or family.name.endswith("_in_progress")
            for sample in family.samples:
                key = (sample.name, tuple(sample.labels.items()))
                before = totals.get(key)
                if before is None:
                    totals[key] = sample.value
                else:
                    totals[key] = before + sample.value if summed else max(before, sample.value)
    for name, totals in values.items():
        for (sample_name, labels), value in totals.items():
            families[name].add_sample(sample_name, dict(labels), value)
    return generate_latest(_Families(families.values()))


def _folder(home: Path) -> Path:
    """The sockets' folder: a temporary one if the home's path is too long for a unix socket."""
    folder = home / "run"
    if len(os.fsencode(folder / f"metrics-{2**22}-{2**22}")) <= _LONGEST_ADDRESS:
        return folder
    name = hashlib.blake2b(os.fsencode(home), digest_size=8).hexdigest()
    return Path(tempfile.gettempdir()) / f"platform-{os.geteuid()}-{name}"
