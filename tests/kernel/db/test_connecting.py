"""Connections to a PostgreSQL server that says nothing."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy.engine import make_url

from kernel.libs.asyncpg_connections import Connector, DatabaseUnreachable
from tests.fakes.waiting import eventually

CLIENTS = 8
ROUNDS = 3


class SilentServer:
    """Takes connections and never answers; counts how many are open."""

    def __init__(self) -> None:
        self.taken = 0
        self.open = 0
        self.most = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.taken += 1
        self.open += 1
        self.most = max(self.most, self.open)
        while await reader.read(1024):
            pass
        self.open -= 1
        writer.close()


@pytest.mark.asyncio
async def test_one_attempt_at_a_time() -> None:
    """Once the server is known to be silent, one attempt is made at a time, and all others fail at once."""
    silent, ended = SilentServer(), asyncio.Event()
    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    connector = Connector(make_url(f"postgresql+asyncpg://127.0.0.1:{port}/x?connect_timeout=1"))

    told = [asyncio.Event() for _ in range(CLIENTS)]

    async def go_on_asking(first_told: asyncio.Event) -> None:
        while not ended.is_set():
            with pytest.raises(DatabaseUnreachable):
                await connector.connect(host="127.0.0.1", port=port, user="x", database="x", ssl=False)
            first_told.set()
            await asyncio.sleep(0.01)  # clients come no faster

    async with server:
        clients = []
        for number, one in enumerate(told, 1):  # their limits pass one after the other
            clients.append(asyncio.create_task(go_on_asking(one)))
            await eventually(lambda n=number: silent.taken >= n or told[0].is_set())
        assert silent.taken > 1  # while nobody knew
        await asyncio.gather(*(one.wait() for one in told))
        silent.taken = silent.most = 0
        await eventually(lambda: silent.taken >= ROUNDS)
        ended.set()
        await asyncio.gather(*clients)
    assert silent.most <= 2  # the one that ends, and the next one
