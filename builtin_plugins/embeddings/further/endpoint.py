"""Models behind an endpoint with `/v1/embeddings`, as OpenAI, Ollama, llama.cpp, vLLM and TEI serve it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from builtin_plugins.embeddings.engines.base import DeclaredWrongly, Vectors, normalized
from builtin_plugins.embeddings.further.declarations import FurtherModel, check_dimension, digest
from builtin_plugins.embeddings.spans import embedding_span
from builtin_plugins.inference import api as inference
from builtin_plugins.inference.api import Embedded
from kernel.sdk import OutgoingClient, OutgoingError, Platform, Unavailable, acting

_WAITS = 3
_LONGEST_WAIT = 60.0
"""Seconds: providers limit use per minute. A longer wait, as for tomorrow's quota, would hold up others."""


class _Item(BaseModel):
    index: Annotated[int, Field(ge=0)]
    embedding: Annotated[list[float], Field(min_length=1)]


class _Items(BaseModel):
    data: list[_Item]


class EndpointModel:
    """One model of one endpoint."""

    def __init__(
        self, platform: Platform, client: OutgoingClient, name: str, declared: FurtherModel, key: str | None
    ) -> None:
        self._platform = platform
        self._client = client
        self._declared = declared
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self.name = name
        model = declared.model or name
        settings_digest = digest(declared.prefix("passage"), declared.max_chars)
        self._model = model
        self._address = f"{str(declared.url).rstrip('/').removesuffix('/v1')}/v1/embeddings"
        self._identity = f"endpoint/{model}/{declared.dimension}/{settings_digest}"

    async def embed(self, texts: Sequence[str], purpose: inference.Purpose) -> Embedded:
        """Vectors of `texts`. Raises Unavailable, and what `check_model_call` raises."""
        hooks, platform = self._platform.hooks, self._platform
        await hooks.ask(inference.check_model_call, platform=platform, model=self.name)
        started, failed = time.perf_counter(), True
        try:
            with embedding_span(platform, self._model, "openai"):
                vectors = await self._vectors([self._input(text, purpose) for text in texts])
            failed = False
        except (OutgoingError, ValueError, DeclaredWrongly) as error:
            raise Unavailable(f"The embedding model '{self.name}' is not available: {error}") from error
        finally:
            seconds = time.perf_counter() - started
            await hooks.tell(
                inference.on_model_called, platform=platform, model=self.name, seconds=seconds, failed=failed
            )
        declared = self._declared
        shares = (declared.meaning, declared.languages, declared.elsewhere)
        return Embedded(vectors, self._identity, declared.unrelated, *shares)

    def _input(self, text: str, purpose: inference.Purpose) -> str:
        whole = self._declared.prefix(purpose) + text[: self._declared.max_chars]
        return whole.encode("utf-8", "replace").decode() or " "  # some servers refuse an empty text

    async def _vectors(self, texts: Sequence[str]) -> Vectors:
        import numpy as np

        size = self._declared.batch
        parts = [await self._batch(texts[at : at + size]) for at in range(0, len(texts), size)]
        return np.concatenate(parts) if parts else np.empty((0, self._declared.dimension), np.float32)

    async def _batch(self, texts: Sequence[str]) -> Vectors:
        body = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        vectors = _read(await self._answer(body), len(texts))
        check_dimension(self.name, self._declared.dimension, vectors)
        return normalized(vectors)

    async def _answer(self, body: Mapping[str, Any]) -> bytes:
        """The endpoint's answer. Only jobs wait and retry if it asks for that.

        Raises ValueError for an error.
        """
        whose = acting()
        waits = _WAITS if whose is not None and whose.in_background else 0
        while True:
            call = self._client.call("POST", self._address, headers=self._headers, json=body)
            async with await call as reply:
                raw = await reply.read()
            if reply.status == 200:
                return raw
            after = reply.headers.get("Retry-After", "")
            asks_to_wait = reply.status in (429, 503) and after.isdecimal() and float(after) <= _LONGEST_WAIT
            if not waits or not asks_to_wait:
                raise ValueError(f"its endpoint answered with status {reply.status}")
            waits -= 1
            await asyncio.sleep(float(after))


def _read(raw: bytes, count: int) -> Vectors:
    """The vectors in the order of the texts. Raises ValueError for anything else."""
    import numpy as np

    try:
        items: Any = _Items.model_validate(json.loads(raw)).data
    except (ValidationError, ValueError, RecursionError):
        raise ValueError("its endpoint's answer is not a list of embeddings") from None
    by_place = {item.index: item.embedding for item in items}
    if sorted(by_place) != list(range(count)) or len({len(one) for one in by_place.values()}) > 1:
        raise ValueError(f"its endpoint did not return {count} vectors of one length")
    vectors = np.array([by_place[at] for at in range(count)], np.float32)
    if not np.isfinite(vectors).all():
        raise ValueError("its endpoint's vectors contain numbers that are not finite")
    return vectors
