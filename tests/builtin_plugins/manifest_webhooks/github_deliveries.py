"""Deliveries as GitHub sends them: its published examples, signed, each with its own id."""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fakes.npm import npm_folder

SECRET = b"kept secret"
SAMPLE = Path(__file__).parents[3] / "manifests" / "samples" / "github-issues.yaml"
PATH = "/webhook/github/issues"

_EXAMPLES = "node_modules/@octokit/webhooks-examples/api.github.com/index.json"


@dataclass(frozen=True)
class GitHubDelivery:
    """One request of GitHub."""

    event: str
    id: str
    body: bytes

    @property
    def payload(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.body)
        return document

    @property
    def is_stored(self) -> bool:
        """Whether the sample manifest keeps it: an issue with a description and a state."""
        return self.event == "issues" and None not in map(self.payload["issue"].get, ("body", "state"))

    @property
    def headers(self) -> dict[str, str]:
        return {
            "Content-Type": "application/json",
            "User-Agent": "GitHub-Hookshot/0123abc",
            "X-GitHub-Event": self.event,
            "X-GitHub-Delivery": self.id,
            "X-Hub-Signature-256": "sha256=" + hmac.new(SECRET, self.body, hashlib.sha256).hexdigest(),
        }


def github_deliveries(count: int) -> list[GitHubDelivery]:
    """So many deliveries: the ping first, then issues and every other event in turn."""
    examples = json.loads((npm_folder(_FOLDER, "GitHub's example deliveries") / _EXAMPLES).read_bytes())
    by_event = {item["name"]: item["examples"] for item in examples}
    issues = itertools.cycle(("issues", body) for body in by_event["issues"])
    others = itertools.cycle((name, body) for name, bodies in by_event.items() for body in bodies)
    mixed: Iterator[tuple[str, Any]] = (next(way) for way in itertools.cycle((issues, others)))
    pings = (("ping", body) for body in by_event["ping"])
    chosen = itertools.islice(itertools.chain(pings, mixed), count)
    return [GitHubDelivery(name, str(uuid.uuid4()), json.dumps(body).encode()) for name, body in chosen]


_FOLDER = Path(__file__).parent / "github_examples"
