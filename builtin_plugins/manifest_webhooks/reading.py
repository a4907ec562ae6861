"""Renders the text and metadata to store from a delivery's bytes; pure, and bounded by the body's size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .manifest import Manifest
from .payload import parse_payload
from .problems import ROOT
from .proofs import Proof
from .templates import MissingValue, compile_template, render_metadata


@dataclass(frozen=True, slots=True)
class Delivery:
    """A rendered delivery. `event_id` is None if the sender gives none."""

    event_id: str | None
    text: str
    metadata: dict[str, Any]


def render(manifest: Manifest, proof: Proof, content_type: str | None, body: bytes) -> Delivery:
    """Parse the body and fill in the templates. Raises PayloadError, TemplateError (MissingValue)."""
    payload = parse_payload(content_type, body)
    source = manifest.store.input
    text = compile_template(source.text).render(payload)
    if not text.strip():
        raise MissingValue(ROOT, "the rendered text is empty")
    return Delivery(proof.event_id, text, render_metadata(source.metadata, payload))
