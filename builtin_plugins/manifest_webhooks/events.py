"""Which deliveries a manifest wants, by their headers (`spec.trigger.webhook.events`)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from .manifest import Webhook
from .problems import shorten

GITHUB_EVENT = "X-GitHub-Event"
_PING = "GitHub's ping: the webhook is set up"
_UNPRINTABLE = re.compile(r"[^\x20-\x7e]")


def why_unwanted(webhook: Webhook, headers: Mapping[str, str]) -> str | None:
    """Why a delivery is acknowledged and not stored; None for one that the manifest wants.

    Names of headers are read in any case, values exactly. GitHub's ping is wanted only if an item asks for
    it. `headers` must be case-insensitive.
    """
    if webhook.events is None:
        return _PING if headers.get(GITHUB_EVENT) == "ping" else None
    if any(_fits(item, headers) for item in webhook.events):
        return None
    if headers.get(GITHUB_EVENT) == "ping":
        return _PING
    return f"not one of the manifest's events: {_sent(webhook.events, headers)}"


def printable(value: str | None, limit: int = 80) -> str | None:
    """A sender's text, made safe for a message or a terminal."""
    return None if value is None else shorten(_UNPRINTABLE.sub("?", value), limit)


def _fits(item: Mapping[str, str], headers: Mapping[str, str]) -> bool:
    return all(headers.get(name) == value for name, value in item.items())


def _sent(events: Sequence[Mapping[str, str]], headers: Mapping[str, str]) -> str:
    names = dict.fromkeys(name for item in events for name in item)
    values = (f"{name}: {printable(headers.get(name)) or '(not sent)'}" for name in list(names)[:5])
    return ", ".join(values)
