"""Rerankers: a server with `/v1/rerank`, or a cross-encoder in a folder on this machine."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

from pydantic import AliasChoices, BaseModel, Field, SecretStr, ValidationError

from builtin_plugins.rag.settings import RagSettings
from kernel.sdk import OUTGOING, CallLimits, OutgoingClient, OutgoingError, Platform, ResourceKey

log = logging.getLogger("platform.rag.reranking")

_MOST_BYTES = 4 << 20
_MOST_CHARS = 4000
_BATCH = 16
_TEI_BATCH = 32  # a server's default limit


class RerankFailed(Exception):
    """No scores this time; the message is for the log."""


class Reranker(Protocol):
    """Scores how well texts fit a question."""

    @property
    def name(self) -> str:
        """How messages name it, such as `the reranking server`."""

    @property
    def place(self) -> Literal["folder", "server"]:
        """Where it runs."""

    @property
    def problem(self) -> str | None:
        """Why it may not work: its last failure, or that it has not been used yet; else None."""

    async def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        """How well each text fits, on a scale of its own. Raises RerankFailed."""


class RerankServer:
    """A server with `/v1/rerank`, as Jina, Cohere, llama.cpp and vLLM speak it, or TEI's `/rerank`."""

    name = "the reranking server"
    place: Literal["folder", "server"] = "server"

    def __init__(
        self, client: OutgoingClient, url: str, model: str | None, api_key: SecretStr | None
    ) -> None:
        self._client = client
        self._url = url.rstrip("/").removesuffix("/v1")
        self._model = {} if model is None else {"model": model}
        self._headers = {"Authorization": f"Bearer {api_key.get_secret_value()}"} if api_key else {}
        self._is_tei = False
        self.problem: str | None = "nobody has asked it yet"

    async def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        """See `Reranker.scores`."""
        documents = [text[:_MOST_CHARS] for text in texts]
        try:
            scores = await self._scores(question, documents)
        except (OutgoingError, ValueError) as error:
            self.problem = str(error)
            raise RerankFailed(self.problem) from error
        self.problem = None
        return scores

    async def _scores(self, question: str, texts: Sequence[str]) -> list[float]:
        if not self._is_tei:
            body = {**self._model, "query": question, "documents": texts, "top_n": len(texts)}
            status, raw = await self._ask("/v1/rerank", body)
            if status != 404:
                return _read(status, raw, len(texts))
        self._is_tei = False  # until it answers as one: another server may have its address by now
        parts = [texts[at : at + _TEI_BATCH] for at in range(0, len(texts), _TEI_BATCH)]
        scores = [score for part in parts for score in await self._of_tei(question, part)]
        self._is_tei = True
        return scores

    async def _of_tei(self, question: str, texts: Sequence[str]) -> list[float]:
        status, raw = await self._ask("/rerank", {"query": question, "texts": texts, "truncate": True})
        return _read(status, raw, len(texts))

    async def _ask(self, path: str, body: Mapping[str, Any]) -> tuple[int, bytes]:
        call = self._client.call("POST", self._url + path, headers=self._headers, json=body)
        async with await call as reply:
            return reply.status, await reply.read()


class CrossEncoderFolder:
    """A cross-encoder in sentence-transformers' format, loaded on first use; only one call at a time, as the
    library doesn't promise thread safety.
    """

    name = "the cross-encoder"
    place: Literal["folder", "server"] = "folder"

    def __init__(self, folder: Path, threads: ThreadPoolExecutor, seconds: float) -> None:
        self._folder = folder
        self._threads = threads
        self._seconds = seconds
        self._model: Any = None
        self.problem: str | None = None  # a check must not load the model: it takes memory

    async def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        """See `Reranker.scores`."""
        pairs = [(question, text[:_MOST_CHARS]) for text in texts]
        work = asyncio.get_running_loop().run_in_executor(self._threads, self._scored, pairs)
        try:
            async with asyncio.timeout(self._seconds if self._model is not None else None):
                scores = await work
        except TimeoutError:
            raise RerankFailed(f"it took longer than {self._seconds} s") from None
        except Exception as error:  # boundary: a library that reads third-party files
            self.problem = f"{self._folder} can't be used: {error}"
            raise RerankFailed(self.problem) from error
        self.problem = None
        return scores

    def _scored(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        if self._model is None:
            self._model = self._loaded()
        scores = self._model.predict(
            list(pairs), batch_size=_BATCH, show_progress_bar=False, convert_to_numpy=True
        )
        if scores.ndim != 1:
            raise ValueError(f"it gives {scores.shape[1]} scores for a pair instead of one")
        return _finite(scores.astype(float).tolist())

    def _loaded(self) -> Any:
        from sentence_transformers import CrossEncoder
        from transformers.utils import logging as transformers_logging

        transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        return CrossEncoder(
            str(self._folder),
            device="cpu",
            local_files_only=True,
            model_kwargs={"use_safetensors": True},  # a pickle would execute its contents
        )


class _Result(BaseModel):
    index: Annotated[int, Field(ge=0)]
    relevance_score: Annotated[
        float, Field(allow_inf_nan=False, validation_alias=AliasChoices("relevance_score", "score"))
    ]


class _Results(BaseModel):
    results: list[_Result]


def _read(status: int, raw: bytes, count: int) -> list[float]:
    """Scores in the order of the texts, from an object or TEI's list. Raises ValueError."""
    if status != 200:
        raise ValueError(f"it answered with status {status}")
    try:
        data = json.loads(raw)
        results = _Results.model_validate({"results": data} if isinstance(data, list) else data).results
    except (ValidationError, ValueError, RecursionError):
        raise ValueError("its answer is not a list of results") from None
    scores = {one.index: one.relevance_score for one in results}
    if sorted(scores) != list(range(count)):
        raise ValueError("it did not score every passage")
    return [scores[at] for at in range(count)]


def _finite(scores: list[float]) -> list[float]:
    if not all(math.isfinite(score) for score in scores):
        raise ValueError("a score is not a finite number")
    return scores


def within(scores: Sequence[float]) -> list[float]:
    """Scores within 0 to 1; logits are mapped by the logistic function."""
    if all(0.0 <= score <= 1.0 for score in scores):
        return list(scores)
    return [1.0 / (1.0 + math.exp(-max(-60.0, min(60.0, score)))) for score in scores]


RERANKER: ResourceKey[Reranker | None] = ResourceKey("reranker")


@asynccontextmanager
async def open_reranker(platform: Platform) -> AsyncIterator[Reranker | None]:
    """The server or the folder that the settings name, or None."""
    settings = platform.settings_of(RagSettings)
    if settings.rerank_folder is not None:
        async with _folder(settings) as reranker:
            yield reranker
    elif settings.rerank_url is not None:
        limits = CallLimits(settings.rerank_seconds, body_bytes=_MOST_BYTES)
        named = [settings.rerank_url]
        async with platform.resource(OUTGOING).client("rag", named=named, limits=limits) as client:
            yield RerankServer(client, settings.rerank_url, settings.rerank_model, settings.rerank_api_key)
    else:
        yield None


@asynccontextmanager
async def _folder(settings: RagSettings) -> AsyncIterator[Reranker | None]:
    """The cross-encoder, if its files and the library are installed; the log says what is missing."""
    folder = Path(settings.rerank_folder or "")
    if find_spec("sentence_transformers") is None:
        log.error("PLATFORM_RAG_RERANK_FOLDER needs sentence-transformers: run './setup.sh --full'")
        yield None
        return
    if not await asyncio.to_thread((folder / "config.json").is_file):
        log.error("PLATFORM_RAG_RERANK_FOLDER names %s, which has no config.json of a cross-encoder", folder)
        yield None
        return
    threads = ThreadPoolExecutor(1, "platform-rerank")
    try:
        yield CrossEncoderFolder(folder, threads, settings.rerank_seconds)
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
