"""A scripted model that knows which of a method's calls it is asked for."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.model_server import ModelServer, Refusal, Script, Turn

Said = str | Refusal | Callable[[dict[str, Any]], str]

_CALLS = {
    "Write one short paragraph": "imagine",
    "You grade search results": "grade",
    "Rewrite the question": "rewrite",
    "You judge a draft": "judge",
    "You plan a search": "decide",
    "You answer questions from": "answer",
}


@dataclass
class Brain:
    """What the model says by the kind of the call: one thing, or one after the other, the last again.

    `calls` are the kinds in the order in which they came, `bodies` the requests. `faults` gives a kind of
    call what happens in the middle of its stream (`Script.middle`).
    """

    server: ModelServer
    said: dict[str, list[Said]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    faults: dict[str, Any] = field(default_factory=dict)

    def play(self, **said: Any) -> None:
        """Say these things from now on; `faults` is what happens in their middle."""
        self.faults = said.pop("faults", {})
        self.said = {name: list(one) if isinstance(one, list) else [one] for name, one in said.items()}
        self.calls.clear()
        self.bodies.clear()
        self.server.streaming.clear()
        self.server.disconnected.clear()
        self.server.script = Script(turn=self.turn, models=("llama3.2", "small"))

    def turn(self, body: dict[str, Any]) -> Turn | Refusal:
        """The server's question what to say."""
        system = body["messages"][0]["content"]
        kind = next(name for start, name in _CALLS.items() if system.startswith(start))
        self.calls.append(kind)
        self.bodies.append(body)
        self.server.script.middle = self.faults.get(kind)
        lines = self.said.get(kind, ["A hotel may cost up to 130 EUR a night [1]."])
        line = lines.pop(0) if len(lines) > 1 else lines[0]
        if isinstance(line, Refusal):
            return line
        text = line(body) if callable(line) else line
        self.server.script.pieces = max(8, len(text) // 200)
        return Turn(text)


def grade(value: str) -> str:
    """A verdict of `corrective`."""
    return json.dumps({"grade": value})


def judged(grounded: float, complete: float, search: str = "") -> str:
    """A verdict of `self_rag`."""
    return json.dumps({"grounded": grounded, "complete": complete, "search": search})


def decided(**changes: Any) -> str:
    """A decision of `auto`."""
    plain = {
        "complexity": "simple",
        "intent": "price",
        "retrieval_strategy": "basic",
        "top_k": 5,
        "use_hyde": False,
        "use_self_rag": False,
        "use_reranking": False,
        "use_query_expansion": False,
        "confidence": 0.9,
    }
    return json.dumps({**plain, **changes})
