"""A client that does what the documentation asks of clients: it tries again, and looks before it does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import aiohttp

PASSWORD = "correct horse battery"
_REFUSED = (502, 503, 504)
_PAUSE = 0.1
_SLOW = 2.0
_PATIENCE = aiohttp.ClientTimeout(total=60)


@dataclass
class Door:
    """An address with machines behind it; remembers how often and for how long it refused."""

    url: str
    session: aiohttp.ClientSession
    requests: int = 0
    refusals: int = 0
    longest: float = 0.0
    slowest: float = 0.0
    slow: list[tuple[float, str]] = field(default_factory=list)
    """Answers that took longer than two seconds, and what was asked."""
    kinds: dict[str, int] = field(default_factory=dict)
    """Why requests were refused, and how often."""

    async def call(
        self,
        method: str,
        path: str,
        *,
        token: str = "",
        form: Callable[[], aiohttp.FormData] | None = None,
        carried_out: Callable[[], Awaitable[Any]] | None = None,
        **options: Any,
    ) -> tuple[int, Any]:
        """Status and JSON of an answer, asked for again while it is refused.

        `carried_out` looks whether a request without an answer was carried out: what it finds is the answer.
        """
        self.requests += 1
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        refused_since, began = None, time.monotonic()
        while True:
            try:
                async with self.session.request(
                    method,
                    self.url + path,
                    headers=headers,
                    data=form() if form else None,  # a body is read once
                    timeout=_PATIENCE,
                    **options,
                ) as answer:
                    body = await answer.read()
                    if answer.status not in _REFUSED:
                        self._took(time.monotonic() - began, f"{method} {path}")
                        return answer.status, await answer.json() if body else None
                    why = f"{method} {answer.status}"
            except (aiohttp.ClientError, ConnectionError, TimeoutError) as error:
                why = f"{method} {type(error).__name__}"
            now = time.monotonic()
            refused_since = now if refused_since is None else refused_since
            self.refusals += 1
            self.kinds[why] = self.kinds.get(why, 0) + 1
            self.longest = max(self.longest, now - refused_since)
            assert now - refused_since < 30, f"{method} {path} is refused for 30 s: {why}"
            if carried_out is not None and (found := await carried_out()) is not None:
                return 200, found
            await asyncio.sleep(_PAUSE)

    def _took(self, seconds: float, what: str) -> None:
        self.slowest = max(self.slowest, seconds)
        if seconds > _SLOW:
            self.slow.append((round(seconds, 1), what))
