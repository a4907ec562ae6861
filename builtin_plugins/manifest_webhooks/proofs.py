"""Proof that a webhook's sender knows the shared secret."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
_HEX_DIGEST = re.compile(r"[0-9A-Fa-f]{64}\Z")

NamedProof = Literal[
    "standard-webhooks", "github", "slack", "stripe", "gitlab", "bitbucket", "bearer", "basic"
]
Scheme = NamedProof | Literal["none"]


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


@dataclass(frozen=True, slots=True)
class _Claim:
    """What a request gives as its proof: one of `candidates` has to equal one of `expected(secret, body)`.

    `event_id(body)` is the sender's id of the delivery.
    """

    candidates: Sequence[bytes]
    expected: Callable[[bytes, bytes], Iterable[bytes]]
    event_id: Callable[[bytes], str | None]


def verify(
    headers: Mapping[str, str],
    body: bytes,
    secrets: Sequence[bytes],
    now: float,
    proof: NamedProof | None = None,
) -> Proof:
    """Verify a request against any of `secrets`; `now` in Unix seconds.

    `proof` says how the sender proves itself. If it is None, a request has to be signed as in Standard
    Webhooks or as by GitHub; Standard Webhooks decides where both signatures are sent. Raises ProofMissing,
    ProofInvalid, SecretUnusable.
    """
    usable = [secret for secret in secrets if secret not in (b"", _PREFIX)]
    if not usable:
        raise SecretUnusable("The secret is empty; set it with `platformctl secret set`.")
    scheme, claim = _claim_of(headers, now, proof)
    expected = [value for secret in usable for value in claim.expected(secret, body)]
    # All pairs are compared, so that the time taken doesn't reveal which one matched.
    matches = [hmac.compare_digest(one, other) for other in expected for one in claim.candidates]
    if not any(matches):
        raise ProofInvalid("The proof does not match: wrong secret, or the body was changed in transit.")
    return Proof(claim.event_id(body), scheme)


def check_headers(headers: Mapping[str, str], now: float, proof: NamedProof | None = None) -> None:
    """Refuse, before the body is read, what can't be a proof whatever the body is; `now` in Unix seconds.

    Raises ProofMissing, ProofInvalid.
    """
    _claim_of(headers, now, proof)


def challenge_of(proof: Proof, body: bytes) -> str | None:
    """What Slack asks back before it uses an address (`url_verification`); None for any other delivery."""
    if proof.scheme != "slack" or _text_inside(body, "type") != "url_verification":
        return None
    return _text_inside(body, "challenge")


def unsigned(headers: Mapping[str, str]) -> Proof:
    """Return the proof for a webhook without a secret: nothing is proven, and the event id is only a hint."""
    values = [value for name, value in headers.items() if name.lower() == "webhook-id"]
    return Proof(_event_id(values[0]) if len(values) == 1 else None, "none")


def _claim_of(headers: Mapping[str, str], now: float, proof: NamedProof | None) -> tuple[NamedProof, _Claim]:
    """The proof that was sent. Raises ProofMissing, ProofInvalid."""
    if proof is None:
        sent = {name.lower() for name in headers}
        proof = "github" if "webhook-signature" not in sent else "standard-webhooks"
        if proof == "github" and "x-hub-signature-256" not in sent:
            raise ProofMissing("The request has neither webhook-signature nor X-Hub-Signature-256.")
    carrier, others, read = _SCHEMES[proof]
    carriers = _proof_headers(headers, {carrier.lower(), *others})
    if carrier.lower() not in carriers:
        raise ProofMissing(f"The request has no {carrier}.")
    return proof, read(carriers, now)


def _proof_headers(headers: Mapping[str, str], names: set[str]) -> dict[str, str]:
    """Collect the headers that carry a proof, by lower-case name; one that is sent twice is refused."""
    values: dict[str, str] = {}
    for name, value in headers.items():
        lower = name.lower()
        if lower in names and lower in values:
            raise ProofInvalid(f"The header {lower} is sent twice.")
        if lower in names:
            values[lower] = value
    return values


def _standard(headers: Mapping[str, str], now: float) -> _Claim:
    """Standard Webhooks 1.0.0; the key is the secret's text, or its base64 content after `whsec_`."""
    event_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not _SIGNED_ID.match(event_id):
        raise ProofInvalid("webhook-id is missing, too long, or has a dot, a space or control characters.")
    _check_age("webhook-timestamp", timestamp, now)
    head = f"{event_id}.{timestamp}.".encode("ascii")
    return _Claim(
        list(_standard_signatures(headers["webhook-signature"])),
        lambda secret, body: [_hmac(key, head + body) for key in _standard_keys(secret)],
        lambda body: event_id,
    )


def _github(headers: Mapping[str, str], now: float) -> _Claim:
    """GitHub's signature of the body; it does not cover the delivery's id."""
    return _of_body(headers, "X-Hub-Signature-256", "x-github-delivery")


def _bitbucket(headers: Mapping[str, str], now: float) -> _Claim:
    """Bitbucket's signature of the body; it does not cover the request's id."""
    return _of_body(headers, "X-Hub-Signature", "x-request-uuid")


def _of_body(headers: Mapping[str, str], carrier: str, id_header: str) -> _Claim:
    return _Claim(
        [_hex_digest(headers, carrier, "sha256=")],
        lambda secret, body: [_hmac(secret, body)],
        lambda body: _event_id(headers.get(id_header, "")),
    )


def _slack(headers: Mapping[str, str], now: float) -> _Claim:
    """Slack's signature of time and body; the event's id is in the body."""
    timestamp = headers.get("x-slack-request-timestamp", "")
    _check_age("X-Slack-Request-Timestamp", timestamp, now)
    head = f"v0:{timestamp}:".encode("ascii")
    return _Claim(
        [_hex_digest(headers, "X-Slack-Signature", "v0=")],
        lambda secret, body: [_hmac(secret, head + body)],
        lambda body: _id_inside(body, "event_id"),
    )


def _stripe(headers: Mapping[str, str], now: float) -> _Claim:
    """Stripe's signature of time and body, `t=…,v1=…`; the event's id is in the body."""
    items = [item.strip().partition("=") for item in headers["stripe-signature"].split(",")[:MAX_SIGNATURES]]
    timestamps = [value for name, _, value in items if name == "t"]
    timestamp = timestamps[0] if len(timestamps) == 1 else ""
    _check_age("The t= of Stripe-Signature", timestamp, now)
    head = f"{timestamp}.".encode("ascii")
    return _Claim(
        [bytes.fromhex(value) for name, _, value in items if name == "v1" and _HEX_DIGEST.match(value)],
        lambda secret, body: [_hmac(secret, head + body)],
        lambda body: _id_inside(body, "id"),
    )


def _gitlab(headers: Mapping[str, str], now: float) -> _Claim:
    """The secret itself, as GitLab sends it."""
    return _of_secret(_bytes(headers["x-gitlab-token"]), headers.get("idempotency-key", ""))


def _bearer(headers: Mapping[str, str], now: float) -> _Claim:
    """The secret itself, as a bearer token."""
    return _of_secret(_bytes(_credential(headers, "bearer")), headers.get("webhook-id", ""))


def _basic(headers: Mapping[str, str], now: float) -> _Claim:
    """The secret itself, `user:password`, as Basic authentication."""
    credential = _decode(_bytes(_credential(headers, "basic")))
    if credential is None:
        raise ProofInvalid("The credentials in Authorization are not base64.")
    return _of_secret(credential, headers.get("webhook-id", ""))


def _of_secret(credential: bytes, event_id: str) -> _Claim:
    """Compares digests, so that the time taken doesn't reveal the secret's length."""
    return _Claim(
        [_digest(credential)], lambda secret, body: [_digest(secret)], lambda body: _event_id(event_id)
    )


def _credential(headers: Mapping[str, str], scheme: str) -> str:
    kind, _, value = headers["authorization"].strip().partition(" ")
    if kind.lower() != scheme:
        raise ProofInvalid(f"Authorization is not '{scheme.title()}' and the secret.")
    return value.strip()


_Read = Callable[[Mapping[str, str], float], _Claim]
_SCHEMES: Mapping[NamedProof, tuple[str, tuple[str, ...], _Read]] = {
    "standard-webhooks": ("webhook-signature", ("webhook-id", "webhook-timestamp"), _standard),
    "github": ("X-Hub-Signature-256", ("x-github-delivery",), _github),
    "slack": ("X-Slack-Signature", ("x-slack-request-timestamp",), _slack),
    "stripe": ("Stripe-Signature", (), _stripe),
    "gitlab": ("X-Gitlab-Token", ("idempotency-key",), _gitlab),
    "bitbucket": ("X-Hub-Signature", ("x-request-uuid",), _bitbucket),
    "bearer": ("Authorization", ("webhook-id",), _bearer),
    "basic": ("Authorization", ("webhook-id",), _basic),
}
"""The header that carries each proof, those that belong to it, and how they are read."""


def _check_age(name: str, timestamp: str, now: float) -> None:
    if not _SECONDS.match(timestamp):
        raise ProofInvalid(
            f"{name} is missing or not a whole number of seconds. Send the Unix time in seconds, "
            "not in milliseconds."
        )
    late = now - int(timestamp)
    if abs(late) > TOLERANCE_SECONDS:
        raise ProofInvalid(
            f"{name} is more than 5 minutes {'behind' if late > 0 else 'ahead of'} the platform's "
            f"clock, which says {datetime.fromtimestamp(now, UTC):%Y-%m-%d %H:%M:%S} UTC. Synchronize the "
            "clocks of both machines (NTP), and sign each retry with the current time."
        )


def _standard_signatures(header: str) -> Iterator[bytes]:
    for item in header.split()[:MAX_SIGNATURES]:
        version, _, encoded = item.partition(",")
        digest = _decode(_bytes(encoded)) if version == "v1" else None
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


def _hex_digest(headers: Mapping[str, str], name: str, prefix: str) -> bytes:
    value = headers[name.lower()]
    if not value.startswith(prefix) or not _HEX_DIGEST.match(value.removeprefix(prefix)):
        raise ProofInvalid(f"{name} is not {prefix} followed by 64 hexadecimal digits.")
    return bytes.fromhex(value.removeprefix(prefix))


def _hmac(key: bytes, message: bytes) -> bytes:
    return hmac.new(key, message, hashlib.sha256).digest()


def _digest(value: bytes) -> bytes:
    return hashlib.sha256(value).digest()


def _bytes(value: str) -> bytes:
    """A header's bytes; aiohttp reads those that are no UTF-8 as surrogates, which are spelled out."""
    return value.encode("utf-8", "backslashreplace")


def _decode(encoded: bytes) -> bytes | None:
    """Decode base64 strictly, padding optional; None when it is not base64 or empty."""
    padded = encoded.rstrip(b"=")
    try:
        return base64.b64decode(padded + b"=" * (-len(padded) % 4), validate=True) or None
    except (binascii.Error, ValueError):
        return None


def _id_inside(body: bytes, key: str) -> str | None:
    return _event_id(_text_inside(body, key) or "")


def _text_inside(body: bytes, key: str) -> str | None:
    """The text at a key of a JSON object; None if there is none."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):  # a form, or what the payload's reader refuses
        return None
    value = document.get(key) if isinstance(document, dict) else None
    return value if isinstance(value, str) else None


def _event_id(value: str) -> str | None:
    return value if _EVENT_ID.match(value) else None
