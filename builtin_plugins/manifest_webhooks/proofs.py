"""Proof that a webhook's sender knows the shared secret."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

TOLERANCE_SECONDS = 300
MAX_SIGNATURES = 16
MIN_KEY_BYTES = 24

_PREFIX = b"whsec_"
# Standard Webhooks forbids dots in the id: they would let a sender shift the boundary of id and body.
_SIGNED_ID = re.compile(r"[\x21-\x2d\x2f-\x7e]{1,256}\Z")
_EVENT_ID = re.compile(r"[\x21-\x7e]{1,256}\Z")
_SECONDS = re.compile(r"[0-9]{1,12}\Z")
_HEADERS = frozenset(
    ("webhook-id", "webhook-timestamp", "webhook-signature", "x-hub-signature-256", "x-github-delivery")
)
_HEX_DIGEST = re.compile(r"sha256=([0-9A-Fa-f]{64})\Z")

Scheme = Literal["standard-webhooks", "github", "none"]


class ProofError(Exception):
    """A request whose proof is not valid; the message never repeats what was sent."""


class ProofMissing(ProofError):
    """The request carries no proof that this platform understands."""


class ProofInvalid(ProofError):
    """The request carries a proof that is malformed, too old or wrong."""


class SecretUnusable(ValueError):
    """None of the given secrets has any bytes to sign with; the operator has to set one."""


@dataclass(frozen=True, slots=True)
class Proof:
    """A valid proof. `event_id` is the sender's id of the delivery, for recognizing repeats."""

    event_id: str | None
    scheme: Scheme


def verify(headers: Mapping[str, str], body: bytes, secrets: Sequence[bytes], now: float) -> Proof:
    """Verify a request against any of `secrets`; `now` in Unix seconds.

    Standard Webhooks 1.0.0: `webhook-id`, `webhook-timestamp` (5 minutes either way) and `webhook-signature`,
    the key being the secret's text, or its base64 content after `whsec_`. GitHub: `X-Hub-Signature-256`, with
    the event id of `X-GitHub-Delivery`, which the signature does not cover. Standard Webhooks decides where
    both are sent. Raises ProofMissing, ProofInvalid, SecretUnusable.
    """
    usable = [secret for secret in secrets if secret not in (b"", _PREFIX)]
    if not usable:
        raise SecretUnusable("The secret is empty; set it with `platformctl secret set`.")
    check_headers(headers, now)
    found = _proof_headers(headers)
    if "webhook-signature" in found:
        return _verify_standard(found, body, usable, now)
    return _verify_github(found, body, usable)


def check_headers(headers: Mapping[str, str], now: float) -> None:
    """Refuse, before the body is read, what can't be a proof whatever the body is; `now` in Unix seconds.

    Raises ProofMissing, ProofInvalid.
    """
    found = _proof_headers(headers)
    if "webhook-signature" in found:
        _standard_head(found, now)
    elif "x-hub-signature-256" in found:
        _github_digest(found)
    else:
        raise ProofMissing("The request has neither webhook-signature nor X-Hub-Signature-256.")


def unsigned(headers: Mapping[str, str]) -> Proof:
    """Return the proof for a webhook without a secret: nothing is proven, and the event id is only a hint."""
    values = [value for name, value in headers.items() if name.lower() == "webhook-id"]
    return Proof(_event_id(values[0]) if len(values) == 1 else None, "none")


def _proof_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Collect the headers that carry a proof, by lower-case name; one that is sent twice is refused."""
    found: dict[str, str] = {}
    for name, value in headers.items():
        lower = name.lower()
        if lower in _HEADERS and lower in found:
            raise ProofInvalid(f"The header {lower} is sent twice.")
        if lower in _HEADERS:
            found[lower] = value
    return found


def _verify_standard(headers: Mapping[str, str], body: bytes, secrets: Iterable[bytes], now: float) -> Proof:
    event_id, timestamp = _standard_head(headers, now)
    given = list(_standard_signatures(headers["webhook-signature"]))
    signed = f"{event_id}.{timestamp}.".encode("ascii") + body
    keys = [key for secret in secrets for key in _standard_keys(secret)]
    _require_match(given, (_hmac(key, signed) for key in keys))
    return Proof(event_id, "standard-webhooks")


def _standard_head(headers: Mapping[str, str], now: float) -> tuple[str, str]:
    """The id and the timestamp, each fit to be signed."""
    event_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not _SIGNED_ID.match(event_id):
        raise ProofInvalid("webhook-id is missing, too long, or has a dot, a space or control characters.")
    _check_age(timestamp, now)
    return event_id, timestamp


def _check_age(timestamp: str, now: float) -> None:
    if not _SECONDS.match(timestamp):
        raise ProofInvalid(
            "webhook-timestamp is missing or not a whole number of seconds. Send the Unix time in seconds, "
            "not in milliseconds."
        )
    late = now - int(timestamp)
    if abs(late) > TOLERANCE_SECONDS:
        raise ProofInvalid(
            f"webhook-timestamp is more than 5 minutes {'behind' if late > 0 else 'ahead of'} the platform's "
            f"clock, which says {datetime.fromtimestamp(now, UTC):%Y-%m-%d %H:%M:%S} UTC. Synchronize the "
            "clocks of both machines (NTP), and sign each retry with the current time."
        )


def _standard_signatures(header: str) -> Iterator[bytes]:
    for item in header.split()[:MAX_SIGNATURES]:
        version, _, encoded = item.partition(",")
        digest = _decode(encoded.encode("utf-8", "replace")) if version == "v1" else None
        if digest:
            yield digest


def _standard_keys(secret: bytes) -> Iterator[bytes]:
    """List the keys that a secret may stand for.

    The published libraries decode a secret with or without its prefix, and others sign with its plain text;
    short texts are not decoded, as the decoded key would be weaker than the text.
    """
    yield secret
    prefixed = secret.startswith(_PREFIX)
    key = _decode(secret.removeprefix(_PREFIX))
    if key and (prefixed or len(key) >= MIN_KEY_BYTES):
        yield key


def _verify_github(headers: Mapping[str, str], body: bytes, secrets: Iterable[bytes]) -> Proof:
    _require_match([_github_digest(headers)], (_hmac(secret, body) for secret in secrets))
    return Proof(_event_id(headers.get("x-github-delivery", "")), "github")


def _github_digest(headers: Mapping[str, str]) -> bytes:
    found = _HEX_DIGEST.match(headers["x-hub-signature-256"])
    if not found:
        raise ProofInvalid("X-Hub-Signature-256 is not sha256= followed by 64 hexadecimal digits.")
    return bytes.fromhex(found[1])


def _require_match(given: Sequence[bytes], expected: Iterable[bytes]) -> None:
    """Compare all pairs, so that the time taken doesn't reveal which one matched."""
    matches = [hmac.compare_digest(one, other) for other in expected for one in given]
    if not any(matches):
        raise ProofInvalid("The signature does not match: wrong secret, or the body was changed in transit.")


def _hmac(key: bytes, message: bytes) -> bytes:
    return hmac.new(key, message, hashlib.sha256).digest()


def _decode(encoded: bytes) -> bytes | None:
    """Decode base64 strictly, padding optional; None when it is not base64 or empty."""
    padded = encoded.rstrip(b"=")
    try:
        return base64.b64decode(padded + b"=" * (-len(padded) % 4), validate=True) or None
    except (binascii.Error, ValueError):
        return None


def _event_id(value: str) -> str | None:
    return value if _EVENT_ID.match(value) else None
