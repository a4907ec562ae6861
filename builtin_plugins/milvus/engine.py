"""The Milvus server: its collections, and the questions that are put to it.

There is one Milvus collection for each length of vectors, for the points of all collections of that length,
and one with the state of each. All methods may be called from any thread, and block.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from builtin_plugins.milvus.positions import EngineState, Position, Version
from kernel.sdk import Unavailable

if TYPE_CHECKING:
    from pymilvus import MilvusClient

    from builtin_plugins.milvus.settings import MilvusSettings

log = logging.getLogger("platform.milvus")

LABEL, COLLECTION, GROUP, VECTOR, WEIGHTS = "label", "collection", "owner", "vector", "weights"
SAMPLE = "sample"
SAMPLES = 64
"""Each point is in one of so many samples."""

_REACHED, _WRITING = "reached", "writing"
_STATE = "state"
_LONGEST_GROUP = 256  # bytes: a name has up to 64 characters
_NOT_FOUND, _NOT_LOADED = 100, 101  # Milvus's codes
_LITE = "milvus_lite"
_AT_ONCE = 5_000  # labels of one deletion
_MOST_FOUND = 16_000  # by one question: Milvus's limit is 16,384
_STATES_AT_ONCE = 5_000
_THREADS = 32  # they wait for the engine

T = TypeVar("T")
Match = tuple[int, float]
"""A label and its score, which is better the higher it is."""


class EngineAway(Unavailable):
    """Milvus can't be asked; the log says why."""

    code = "search_engine_unavailable"
    default_detail = "The search engine does not answer; try again later"

    def __init__(self, reason: str = "it lost what it had") -> None:
        """`reason` is for operators."""
        super().__init__()
        self.reason = reason


class ContentMissing(Exception):
    """The engine lacks a Milvus collection that it had."""


class MilvusEngine:
    """A client of one Milvus server."""

    def __init__(self, settings: MilvusSettings, identity: str) -> None:
        self._settings = settings
        self._prefix = f"{settings.prefix}_{identity}_"
        self._guard = threading.Lock()
        self._client: MilvusClient | None = None
        self._attempts = 0
        self._threads = ThreadPoolExecutor(_THREADS, "milvus")
        self._collections: set[str] = set()
        self._is_lite = False

    async def run(self, work: Callable[..., T], *args: Any) -> T:
        """Do `work` in a thread of the engine's own: while it does not answer, it holds up nothing else."""
        loop, context = asyncio.get_running_loop(), contextvars.copy_context()
        return await loop.run_in_executor(self._threads, partial(context.run, work, *args))

    @property
    def address(self) -> str:
        """Where the server is."""
        return self._settings.uri

    def version(self) -> str:
        """The server's version. Raises EngineAway."""
        return str(self._ask("", lambda client: client.get_server_version(timeout=self._seconds)))

    def state(self, collection_id: int, *, exact: bool) -> EngineState | None:
        """The state of a collection; unless `exact`, perhaps an earlier one."""
        try:
            rows = self._ask(
                self._state,
                lambda client: client.query(
                    self._state,
                    ids=[collection_id],
                    output_fields=[_REACHED, _WRITING],
                    consistency_level=_level(exact=exact),
                    timeout=self._seconds,
                ),
            )
        except ContentMissing:
            return None
        return _read(rows[0]) if rows else None

    def states(self) -> dict[int, EngineState]:
        """The states of all collections."""
        try:
            rows = self._ask(self._state, self._all_states)
        except ContentMissing:
            return {}
        return {row["id"]: _read(row) for row in rows}

    def _all_states(self, client: MilvusClient) -> list[Mapping[str, Any]]:
        pages = client.query_iterator(
            self._state,
            batch_size=_STATES_AT_ONCE,
            filter="id >= 0",
            output_fields=["id", _REACHED, _WRITING],
            consistency_level="Strong",
            timeout=self._seconds,
        )
        try:
            rows: list[Mapping[str, Any]] = []
            while page := pages.next():
                rows += page
            return rows
        finally:
            pages.close()

    def put_state(self, collection_id: int, state: EngineState) -> None:
        """Replace the state of a collection."""
        self._make(self._state, self._state_schema)
        row = {"id": collection_id, **_written(state), VECTOR: [1.0, 0.0]}
        self._ask(self._state, lambda client: client.upsert(self._state, [row], timeout=self._seconds))

    def put(self, dimension: int, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write points, replacing those with the same labels."""
        name = self._points(dimension)
        self._make(name, lambda client: self._point_schema(client, dimension))
        if rows:
            entities = [dict(row) for row in rows]
            self._ask(name, lambda client: client.upsert(name, entities, timeout=self._patience))

    def remove(self, dimension: int, labels: Sequence[int]) -> None:
        """Delete points by label; unknown ones are ignored."""
        name = self._points(dimension)
        for start in range(0, len(labels), _AT_ONCE):
            some = list(labels[start : start + _AT_ONCE])
            self._ask(name, partial(_delete, name, self._patience, ids=some))

    def settle(self, dimension: int) -> None:
        """Index what was written. Milvus does so by itself; Lite searches it very slowly until then."""
        name = self._points(dimension)
        if self._is_lite:
            self._ask(name, lambda client: client.flush(name, timeout=self._patience))

    def compact(self) -> None:
        """Ask the engine to rewrite files that still have something of deleted points."""
        for name in self._names():
            self._ask(name, partial(_compact, name, self._patience))

    def clear(self, collection_id: int) -> None:
        """Delete all points of a collection, and its state."""
        for name in self._names():
            key = "id" if name == self._state else COLLECTION
            self._ask(name, partial(_delete, name, self._patience, filter=f"{key} == {collection_id}"))

    def drop_all(self) -> None:
        """Remove everything that this database has in the engine."""
        for name in self._names():
            self._ask(name, partial(_drop, name, self._patience))
        self._collections.clear()

    def count(self, condition: str) -> int:
        """How many points there are, in all Milvus collections together."""
        return sum(
            self.count_in(name, condition, exact=True) for name in self._names() if name != self._state
        )

    def count_of(self, dimension: int, condition: str, *, exact: bool) -> int:
        """How many points of this length there are."""
        return self.count_in(self._points(dimension), condition, exact=exact)

    def count_in(self, name: str, condition: str, *, exact: bool) -> int:
        rows = self._ask(
            name,
            lambda client: client.query(
                name,
                filter=condition,
                output_fields=["count(*)"],
                consistency_level=_level(exact=exact),
                timeout=self._seconds,
            ),
        )
        return int(rows[0]["count(*)"])

    def search(
        self, dimension: int, field: str, questions: Sequence[Any], k: int, condition: str, *, exact: bool
    ) -> list[list[Match]]:
        """For each question, the `k` best matches by inner product, best first.

        Raises ContentMissing, EngineAway.
        """
        name = self._points(dimension)
        hits_by_question = self._ask(
            name,
            lambda client: client.search(
                name,
                list(questions),
                anns_field=field,
                limit=min(k, _MOST_FOUND),
                filter=condition,
                output_fields=[LABEL],
                consistency_level=_level(exact=exact),
                timeout=self._seconds,
            ),
        )
        return [[(hit[LABEL], hit["distance"]) for hit in hits] for hits in hits_by_question]

    def close(self) -> None:
        """Leave the server."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        with self._guard:
            if self._client is not None:
                self._client.close()
                self._client = None

    @property
    def _seconds(self) -> float:
        return self._settings.timeout_seconds

    @property
    def _patience(self) -> float:
        """Writing takes longer than asking."""
        return 6 * self._settings.timeout_seconds

    @property
    def _state(self) -> str:
        return self._prefix + _STATE

    def _points(self, dimension: int) -> str:
        return f"{self._prefix}{dimension}"

    def _names(self) -> list[str]:
        names = self._ask("", lambda client: client.list_collections(timeout=self._seconds))
        return sorted(name for name in names if name.startswith(self._prefix))

    def _ask(self, name: str, work: Callable[[MilvusClient], T]) -> T:
        """Do `work` with a collection. Raises ContentMissing, EngineAway."""
        from grpc import RpcError
        from pymilvus import MilvusException

        try:
            client = self._connected()
            try:
                return work(client)
            except MilvusException as error:
                if error.code != _NOT_LOADED:
                    raise
                client.load_collection(name, timeout=self._patience)  # Lite forgets it when it ends
                return work(client)
        except MilvusException as error:
            if error.code == _NOT_FOUND:
                self._collections.discard(name)
                raise ContentMissing(name) from None
            raise self._away(str(error.message)) from None
        except (RpcError, OSError) as error:
            raise self._away(type(error).__name__) from None

    def _away(self, reason: str) -> EngineAway:
        log.warning("Milvus at %s can't be asked: %s", self.address, reason[:300])
        return EngineAway(reason[:300])

    def _connected(self) -> MilvusClient:
        """The client. Who waits while another thread fails to connect does not try again by itself."""
        attempts = self._attempts
        with self._guard:
            if self._client is None:
                if self._attempts != attempts:
                    raise EngineAway("it could not be reached a moment ago")
                self._attempts += 1
                self._client = self._connect()
            return self._client

    def _connect(self) -> MilvusClient:
        from pymilvus import MilvusClient

        logging.getLogger("pymilvus").setLevel(logging.CRITICAL)  # it logs each error with its stack
        token = self._settings.token
        client = MilvusClient(
            self._settings.uri,
            token="" if token is None else token.get_secret_value(),
            db_name=self._settings.database,
            timeout=self._seconds,
        )
        version = client.get_server_version(timeout=self._seconds)
        self._is_lite = str(version).startswith(_LITE)
        return client

    def _make(self, name: str, schema: Callable[[MilvusClient], tuple[Any, Any]]) -> None:
        """Create a Milvus collection unless it is there."""
        if name not in self._collections:
            self._ask(name, lambda client: self._create(client, name, schema))
            self._collections.add(name)

    def _create(
        self, client: MilvusClient, name: str, schema: Callable[[MilvusClient], tuple[Any, Any]]
    ) -> None:
        from pymilvus import MilvusException

        if client.has_collection(name, timeout=self._seconds):
            return
        fields, indexes = schema(client)
        try:
            client.create_collection(name, schema=fields, index_params=indexes, timeout=self._patience)
        except MilvusException:
            if not client.has_collection(name, timeout=self._seconds):  # else another process made it
                raise

    def _state_schema(self, client: MilvusClient) -> tuple[Any, Any]:
        from pymilvus import DataType

        fields = client.create_schema(auto_id=False, enable_dynamic_field=False)
        fields.add_field("id", DataType.INT64, is_primary=True)
        fields.add_field(_REACHED, DataType.VARCHAR, max_length=4096)
        fields.add_field(_WRITING, DataType.VARCHAR, max_length=128)
        fields.add_field(VECTOR, DataType.FLOAT_VECTOR, dim=2)  # there must be one
        indexes = client.prepare_index_params()
        indexes.add_index(VECTOR, index_type="FLAT", metric_type="IP")
        return fields, indexes

    def _point_schema(self, client: MilvusClient, dimension: int) -> tuple[Any, Any]:
        from pymilvus import DataType

        fields = client.create_schema(auto_id=False, enable_dynamic_field=False)
        fields.add_field(LABEL, DataType.INT64, is_primary=True)
        fields.add_field(COLLECTION, DataType.INT64)
        fields.add_field(GROUP, DataType.VARCHAR, max_length=_LONGEST_GROUP)
        fields.add_field(SAMPLE, DataType.INT64)
        fields.add_field(WEIGHTS, DataType.SPARSE_FLOAT_VECTOR)
        indexes = client.prepare_index_params()
        indexes.add_index(COLLECTION, index_type="INVERTED")
        indexes.add_index(GROUP, index_type="INVERTED")
        indexes.add_index(SAMPLE, index_type="INVERTED")
        indexes.add_index(WEIGHTS, index_type="SPARSE_INVERTED_INDEX", metric_type="IP")
        if dimension:  # retired points are searched by words alone
            fields.add_field(VECTOR, DataType.FLOAT_VECTOR, dim=dimension)
            indexes.add_index(VECTOR, index_type="AUTOINDEX", metric_type="IP")
        return fields, indexes


def _delete(name: str, seconds: float, client: MilvusClient, **what: Any) -> None:
    client.delete(name, **what, timeout=seconds)


def _compact(name: str, seconds: float, client: MilvusClient) -> None:
    client.compact(name, timeout=seconds)


def _drop(name: str, seconds: float, client: MilvusClient) -> None:
    client.drop_collection(name, timeout=seconds)


def _level(*, exact: bool) -> str:
    """Strong waits until every write before the question is seen; Bounded may miss the last 5 seconds."""
    return "Strong" if exact else "Bounded"


def _read(row: Mapping[str, str]) -> EngineState:
    reached, writing = row[_REACHED], row[_WRITING]
    return EngineState(
        reached=Position.model_validate_json(reached) if reached else None,
        writing=Version.model_validate_json(writing) if writing else None,
    )


def _written(state: EngineState) -> dict[str, str]:
    reached, writing = state.reached, state.writing
    return {
        _REACHED: "" if reached is None else reached.model_dump_json(),
        _WRITING: "" if writing is None else Version(**writing.model_dump()).model_dump_json(),
    }
