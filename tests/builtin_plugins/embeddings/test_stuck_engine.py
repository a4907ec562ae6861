"""A runtime whose threads end no batch any more: the engine notices, and computes on with a new network."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from builtin_plugins.embeddings.engines.base import EngineError, Ids, Reference
from builtin_plugins.embeddings.engines.openvino import OpenVinoEngine
from builtin_plugins.embeddings.engines.openvino_runtime import opset, runtime

PATIENCE = 0.5
TEXTS = ["one", "two words", "and three words"]
EXPECTED = np.array([[1, 0], [1, 0], [1, 0]], np.float32)


class Gates:
    """Where a network's batches stop: open, unless a network is `stuck`."""

    def __init__(self) -> None:
        self.made = 0
        self.stuck: set[int] = set()
        self.entered = threading.Event()
        self.released = threading.Event()


def gate_class(gates: Gates) -> type[Any]:
    """An operation of a graph that passes its numbers on, or stays for ever."""

    class Gate(runtime().Op):  # type: ignore[misc]
        def __init__(self, numbers: Any = None, number: int = 0) -> None:
            super().__init__(self)
            self.number = number
            if numbers is not None:
                self.set_arguments([numbers])
                self.constructor_validate_and_infer_types()

        def validate_and_infer_types(self) -> None:
            self.set_output_type(0, self.get_input_element_type(0), self.get_input_partial_shape(0))

        def clone_with_new_inputs(self, inputs: list[Any]) -> Any:
            return Gate(inputs[0], self.number)

        def has_evaluate(self) -> bool:
            return True

        def evaluate(self, outputs: list[Any], inputs: list[Any]) -> bool:
            if self.number in gates.stuck:
                gates.entered.set()
                gates.released.wait()
            inputs[0].copy_to(outputs[0])
            return True

        def visit_attributes(self, visitor: Any) -> bool:
            return True

    return Gate


class OneGate:
    """A network that only passes its input on; each graph has its own gate."""

    model, fingerprint, dimension, takes_int8 = "gate", "0", 2, False
    reference = Reference(TEXTS, EXPECTED)

    def __init__(self, gates: Gates) -> None:
        self._gates = gates
        self._kind = gate_class(gates)

    def graph(self, *, int8: bool) -> Any:
        numbers = opset().parameter([-1, self.dimension], np.float32)
        self._gates.made += 1
        gate = self._kind(numbers.output(0), self._gates.made)
        return runtime().Model([opset().result(gate.output(0))], [numbers])

    def forget(self) -> None:
        pass

    def tokens(self, texts: list[str]) -> list[Ids]:
        return [[1] * len(text.split()) for text in texts]

    def inputs(self, tokens: list[Ids]) -> list[npt.NDArray[Any]]:
        return [np.array([[len(ids), 0] for ids in tokens], np.float32)]


@pytest.fixture
def gates() -> Iterator[Gates]:
    gates = Gates()
    yield gates
    gates.released.set()


def test_a_new_network_goes_on(gates: Gates, caplog: pytest.LogCaptureFixture) -> None:
    """Whoever waits gets vectors from the new network, and the log names the engine."""
    engine = OpenVinoEngine(OneGate(gates), precision="fp32", threads=1, patience=PATIENCE)
    gates.stuck = {1}
    with ThreadPoolExecutor(3) as threads:
        for found in threads.map(engine.encode, [TEXTS] * 3):
            assert found == pytest.approx(EXPECTED)
    assert gates.made == 2
    assert engine.identity in caplog.text
    assert engine.encode(TEXTS) == pytest.approx(EXPECTED)


def test_stuck_again(gates: Gates) -> None:
    """The caller gets an error, and the next one a new network."""
    engine = OpenVinoEngine(OneGate(gates), precision="fp32", threads=1, patience=PATIENCE)
    gates.stuck = {1, 2}
    with pytest.raises(EngineError):
        engine.encode(TEXTS)
    assert engine.encode(TEXTS) == pytest.approx(EXPECTED)
    assert gates.made == 3
