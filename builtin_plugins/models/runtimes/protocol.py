"""What every model runtime offers, in plain values: the interface between platform and model server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, runtime_checkable

from builtin_plugins.inference import api as inference

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Embeddings: TypeAlias = "NDArray[np.float32]"
LONGEST_NAME: Final = 200
MOST_MODELS: Final = 2_000


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """A request for one chat completion.

    ``max_tokens`` bounds the answer, not the prompt. ``options`` are the runtime's own parameters
    (``top_p``, ``seed``, Ollama's ``num_ctx`` ...); they can't replace ``model``, ``messages`` or ``stream``.
    """

    model: str
    messages: Sequence[inference.ChatMessage]
    temperature: float = 0.7
    max_tokens: int = 2000
    stop: Sequence[str] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of an answer that is being generated; never empty."""

    text: str


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """One model that a runtime has. ``modified_at`` is ISO 8601; unknown facts are None."""

    id: str
    size_bytes: int | None = None
    modified_at: str | None = None
    family: str | None = None
    parameter_size: str | None = None


def usable(models: Iterable[ModelInfo]) -> list[ModelInfo]:
    """Those of a server's models whose names can be stored, shown and sent: so many at most."""
    named = (info for info in models if 0 < len(info.id) <= LONGEST_NAME and info.id.isprintable())
    return list(islice(named, MOST_MODELS))


@dataclass(frozen=True, slots=True)
class ModelDetails:
    """What a runtime reports about one model; ``details`` is its own object, unchanged."""

    id: str
    details: Mapping[str, Any]
    capabilities: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PullProgress:
    """How far a pull has got, in bytes of all its files together; `total` grows as they become known.

    `stage` is the runtime's own word for what it does; only the last one is `done`.
    """

    stage: str
    completed: int
    total: int
    done: bool = False


@dataclass(frozen=True, slots=True)
class RuntimeLimits:
    """Bounds on one call. Times are seconds, sizes bytes.

    ``idle_s`` is the longest silence inside a stream, its first token included: on a CPU a long prompt is
    silent for a minute. A call that doesn't stream is silent until it ends, so only ``total_s`` limits it;
    ``look_s`` limits calls that only read, such as the list of models.
    """

    connect_s: float = 5.0
    idle_s: float = 120.0
    total_s: float = 300.0
    look_s: float = 15.0
    health_s: float = 3.0
    max_line_bytes: int = 1 << 20
    max_body_bytes: int = 64 << 20
    embed_batch: int = 64


class ModelRuntime(Protocol):
    """A model server. Every method raises a ``ModelRuntimeError`` and nothing else, except ``healthy``."""

    async def generate(self, request: GenerationRequest) -> inference.Completion:
        """The whole answer at once."""
        ...

    def stream(self, request: GenerationRequest) -> AsyncGenerator[TextDelta | inference.Completion, None]:
        """The answer piece by piece; the last item, and only that, is the ``Generated``.

        Closing the iterator (``contextlib.aclosing``) or cancelling its task closes the connection, and the
        runtime then stops generating.
        """
        ...

    def chat(self, request: inference.ChatRequest, model: str) -> inference.ChatEvents:
        """The model's next turn in a chat (see the hook ``chat_with_model``); closed like ``stream``."""
        ...

    async def embed(self, model: str, texts: Sequence[str]) -> Embeddings:
        """L2-normalized float32 vectors [n, d], in the order of ``texts``; [0, 0] for no texts."""
        ...

    async def models(self) -> list[ModelInfo]:
        """The models that the runtime has, in its order."""
        ...

    async def describe(self, model: str) -> ModelDetails:
        """What the runtime knows about one model; ``ModelNotFound`` if it has none of that name."""
        ...

    async def healthy(self) -> bool:
        """Whether the runtime answers now; never raises."""
        ...


@runtime_checkable
class ManagedRuntime(Protocol):
    """A runtime whose models can be pulled and deleted from here."""

    def pull(self, model: str) -> AsyncGenerator[PullProgress, None]:
        """Fetch a model, continuing where an earlier pull ended; closing the iterator stops it.

        Raises ModelNotFound if no registry has it, another ModelRuntimeError if the connection is lost.
        """
        ...

    async def delete(self, model: str) -> None:
        """Remove a model. Raises ModelNotFound."""
        ...
