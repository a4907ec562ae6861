"""From the bytes of a delivery to the text and metadata to store; pure, and bounded by the body's size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .manifest import Manifest
from .payload import parse_payload
from .problems import ROOT
from .proofs import Proof, unsigned, verify
from .templates import TemplateError, compile_template, render_metadata


@dataclass(frozen=True, slots=True)
class Delivery:
    """A proved delivery, rendered. `event_id` is None where the sender names none."""

    event_id: str | None
    text: str
    metadata: dict[str, Any]


def prove(
    manifest: Manifest, secret: bytes | None, headers: Mapping[str, str], body: bytes, now: float
) -> Proof:
    """Check the proof that the manifest wants, if any; `now` in Unix seconds.

    Raises ProofError, and SecretUnusable where the secret is not set.
    """
    if manifest.webhook.secret_ref is None:
        return unsigned(headers)
    return verify(headers, body, [secret or b""], now)


def render(manifest: Manifest, proof: Proof, content_type: str | None, body: bytes) -> Delivery:
    """Parse the body and fill in the templates. Raises PayloadError, TemplateError."""
    payload = parse_payload(content_type, body)
    source = manifest.store.input
    text = compile_template(source.text).render(payload)
    if not text.strip():
        raise TemplateError(ROOT, "the rendered text is empty")
    return Delivery(proof.event_id, text, render_metadata(source.metadata, payload))
