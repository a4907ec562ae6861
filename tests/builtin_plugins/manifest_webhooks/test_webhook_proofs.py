"""Proofs of webhooks: published examples, forgeries, time, rotation and malformed headers."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from multidict import CIMultiDict

from builtin_plugins.manifest_webhooks.proofs import (
    NamedProof,
    Proof,
    ProofError,
    ProofInvalid,
    ProofMissing,
    SecretUnusable,
    unsigned,
    verify,
)

# The example of the Standard Webhooks reference libraries.
SECRET = b"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
MESSAGE = "msg_p5jXN8AQM9LWM0D4loKWxJek"
SENT = 1614265330
BODY = b'{"test": 2432232314}'
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
HEADERS = {"webhook-id": MESSAGE, "webhook-timestamp": str(SENT), "webhook-signature": SIGNATURE}

# The example of GitHub's documentation, "Validating webhook deliveries".
GITHUB_SECRET = b"It's a Secret to Everybody"
GITHUB_BODY = b"Hello, World!"
GITHUB_SIGNATURE = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"


def sign(key: bytes, body: bytes, event: str = "msg_1", timestamp: str = str(SENT)) -> dict[str, str]:
    digest = hmac.new(key, f"{event}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    signature = "v1," + base64.b64encode(digest).decode()
    return {"webhook-id": event, "webhook-timestamp": timestamp, "webhook-signature": signature}


def test_standard_webhooks_example() -> None:
    """The libraries' published example verifies and gives its id."""
    assert verify(HEADERS, BODY, [SECRET], SENT) == Proof(MESSAGE, "standard-webhooks")


def test_github_example() -> None:
    """GitHub's published example verifies and gives the delivery id."""
    headers = {
        "X-Hub-Signature-256": GITHUB_SIGNATURE,
        "X-GitHub-Delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
    }
    expected = Proof("72d3162e-cc78-11e3-81ab-4c9367dc0958", "github")
    assert verify(CIMultiDict(headers), GITHUB_BODY, [GITHUB_SECRET], SENT) == expected
    assert verify({"X-HUB-SIGNATURE-256": GITHUB_SIGNATURE}, GITHUB_BODY, [GITHUB_SECRET], 0).event_id is None


@pytest.mark.parametrize(
    "secret",
    [SECRET, SECRET.removeprefix(b"whsec_"), base64.b64decode(SECRET.removeprefix(b"whsec_"))],
    ids=["prefixed", "base64", "raw"],
)
def test_forms_of_a_secret(secret: bytes) -> None:
    """The same key is known by its prefixed form, its bare base64 and its bytes."""
    assert verify(HEADERS, BODY, [secret], SENT).event_id == MESSAGE


def test_a_long_secret_without_its_prefix() -> None:
    key = bytes(range(64))
    assert verify(sign(key, BODY), BODY, [base64.b64encode(key)], SENT).event_id == "msg_1"


def test_raw_text_secret() -> None:
    """A secret that is plain text signs with its own bytes."""
    assert verify(sign(b"open sesame", BODY), BODY, [b"open sesame"], SENT).event_id == "msg_1"


def test_short_text_is_not_decoded() -> None:
    weak = base64.b64decode("abcdefgh")
    with pytest.raises(ProofInvalid):
        verify(sign(weak, BODY), BODY, [b"abcdefgh"], SENT)


@pytest.mark.parametrize("offset", [-300, 300, 0, -299.9])
def test_inside_the_window(offset: float) -> None:
    """Five minutes are allowed on both sides, inclusive."""
    assert verify(HEADERS, BODY, [SECRET], SENT + offset)


@pytest.mark.parametrize("offset", [-300.5, 301, 10**9, -(10**9)])
def test_outside_the_window(offset: float) -> None:
    """Beyond it a right signature is refused too: a recorded request is worth nothing later."""
    with pytest.raises(ProofInvalid, match="5 minutes"):
        verify(HEADERS, BODY, [SECRET], SENT + offset)


def test_rotation_on_both_sides() -> None:
    """Several secrets here, several signatures there: one match is enough."""
    assert verify(HEADERS, BODY, [b"new secret", SECRET], SENT)
    others = "v1a,hnO3f9T8Ytu9 v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc= "
    assert verify(HEADERS | {"webhook-signature": others + SIGNATURE}, BODY, [SECRET], SENT)
    github = {"X-Hub-Signature-256": GITHUB_SIGNATURE}
    assert verify(github, GITHUB_BODY, [b"new secret", GITHUB_SECRET], SENT)


FORGED: list[dict[str, Any]] = [
    {"webhook-id": "msg_other"},
    {"webhook-timestamp": str(SENT + 1)},
    {"webhook-signature": "v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc="},
    {"webhook-signature": SIGNATURE.replace("v1,", "v2,")},
    {"webhook-signature": SIGNATURE.removeprefix("v1,")},
    {"webhook-signature": SIGNATURE[:20]},
    {"webhook-signature": "v1,"},
    {"webhook-signature": ""},
    {"webhook-signature": "v1,ü§💥 ,, v1"},
    {"webhook-timestamp": "hello"},
    {"webhook-timestamp": ""},
    {"webhook-timestamp": f"{SENT}.0"},
    {"webhook-timestamp": f" {SENT}"},
    {"webhook-timestamp": f"{SENT}\n"},
    {"webhook-timestamp": "9" * 5000},
    {"webhook-timestamp": "١٦١٤٢٦٥٣٣٠"},
    {"webhook-id": ""},
    {"webhook-id": "a" * 257},
    {"webhook-id": "ünï"},
]


@pytest.mark.parametrize("change", FORGED)
def test_forged_or_malformed_standard_headers(change: dict[str, str]) -> None:
    """Any change of id, time or signature, and any malformed value, is refused and never a crash."""
    with pytest.raises(ProofInvalid):
        verify(HEADERS | change, BODY, [SECRET], SENT)


@pytest.mark.parametrize(
    ("timestamp", "said"),
    [
        (str(SENT - 301), "5 minutes behind"),
        (str(SENT + 301), "5 minutes ahead"),
        (str(SENT * 1000), "milliseconds"),
        ("2021-02-25T15:02:10Z", "webhook-timestamp"),
    ],
)
def test_clocks_that_differ(timestamp: str, said: str) -> None:
    """The refusal names the header, in which direction it is wrong, and what to do."""
    with pytest.raises(ProofInvalid, match=said) as refused:
        verify(HEADERS | {"webhook-timestamp": timestamp}, BODY, [SECRET], SENT)
    assert ("2021-02-25 15:02:10 UTC" in str(refused.value)) == (len(timestamp) == 10)


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp"])
def test_incomplete_standard_headers(name: str) -> None:
    """A signature without its id or time is invalid."""
    with pytest.raises(ProofInvalid):
        verify({key: value for key, value in HEADERS.items() if key != name}, BODY, [SECRET], SENT)


def test_changed_body_and_wrong_secret() -> None:
    for body, secret in (
        (BODY + b" ", SECRET),
        (BODY, b"whsec_AAAA9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
        (b"", SECRET),
    ):
        with pytest.raises(ProofInvalid):
            verify(HEADERS, body, [secret], SENT)


def test_id_cannot_swallow_the_border() -> None:
    """An id with a dot could move the border between id, time and body: refused, though signed."""
    headers = sign(b"open sesame", BODY, event="msg.1")
    with pytest.raises(ProofInvalid, match="dot"):
        verify(headers, BODY, [b"open sesame"], SENT)


def test_repeated_header() -> None:
    """A proof header that is sent twice is ambiguous and refused."""
    headers = CIMultiDict(HEADERS)
    headers.add("Webhook-Id", "msg_other")
    with pytest.raises(ProofInvalid, match="twice"):
        verify(headers, BODY, [SECRET], SENT)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "sha256=",
        "sha1=" + "0" * 40,
        GITHUB_SIGNATURE + "0",
        GITHUB_SIGNATURE[:-1],
        GITHUB_SIGNATURE + "\n",
        "sha256=" + "g" * 64,
        "sha256=" + "0" * 64,
        "💥",
    ],
)
def test_forged_or_malformed_github_header(value: str) -> None:
    with pytest.raises(ProofInvalid):
        verify({"X-Hub-Signature-256": value}, GITHUB_BODY, [GITHUB_SECRET], SENT)


@pytest.mark.parametrize("headers", [{}, {"X-Hub-Signature": "sha1=" + "0" * 40}, {"webhook-id": "msg_1"}])
def test_missing_proof(headers: dict[str, str]) -> None:
    """No proof, or GitHub's outdated SHA-1 alone, counts as missing."""
    with pytest.raises(ProofMissing):
        verify(headers, BODY, [SECRET], SENT)


@pytest.mark.parametrize("secrets", [[], [b""], [b"whsec_"], [b"", b"whsec_"]])
def test_empty_secret_proves_nothing(secrets: list[bytes]) -> None:
    """Anybody can sign with an empty key, so it is the operator's error and never a proof."""
    with pytest.raises(SecretUnusable):
        verify(sign(b"", BODY), BODY, secrets, SENT)


def test_standard_webhooks_decides_where_both_are_sent() -> None:
    digest = hmac.new(SECRET, BODY, hashlib.sha256).hexdigest()
    both = HEADERS | {"webhook-timestamp": "1", "X-Hub-Signature-256": f"sha256={digest}"}
    with pytest.raises(ProofInvalid):
        verify(both, BODY, [SECRET], SENT)


@pytest.mark.parametrize(
    ("headers", "event_id"),
    [
        ({}, None),
        ({"Webhook-Id": "msg_1"}, "msg_1"),
        ({"webhook-id": "a b"}, None),
        ({"webhook-id": "x" * 300}, None),
    ],
)
def test_unsigned(headers: dict[str, str], event_id: str | None) -> None:
    """Without a secret nothing is proved; a well-formed webhook-id still identifies repeats."""
    assert unsigned(headers) == Proof(event_id, "none")


def test_unsigned_with_two_ids() -> None:
    headers = CIMultiDict([("webhook-id", "msg_1"), ("Webhook-Id", "msg_2")])
    assert unsigned(headers) == Proof(None, "none")


# The example of Slack's documentation, "Verifying requests from Slack".
SLACK_SECRET = b"8f742231b10e8888abcd99yyyzzz85a5"
SLACK_SENT = 1531420618
SLACK_BODY = (
    b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&"
    b"channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&"
    b"response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F"
    b"96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
)
SLACK_SIGNATURE = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"

STRIPE_BODY = b'{"id": "evt_1", "object": "event"}'


def stripe_signature(key: bytes, body: bytes, timestamp: int = SENT) -> str:
    """What Stripe's libraries compute, beside a signature of the old scheme."""
    digest = hmac.new(key, f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={timestamp},v1={digest},v0={'0' * 64}"


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


# Each proof with a delivery that it accepts: (headers, body, secret, time, id).
PROOFS: dict[NamedProof, tuple[dict[str, str], bytes, bytes, float, str | None]] = {
    "standard-webhooks": (HEADERS, BODY, SECRET, SENT, MESSAGE),
    "github": ({"X-Hub-Signature-256": GITHUB_SIGNATURE}, GITHUB_BODY, GITHUB_SECRET, SENT, None),
    "slack": (
        {"X-Slack-Signature": SLACK_SIGNATURE, "X-Slack-Request-Timestamp": str(SLACK_SENT)},
        SLACK_BODY,
        SLACK_SECRET,
        SLACK_SENT,
        None,
    ),
    "stripe": (
        {"Stripe-Signature": stripe_signature(SECRET, STRIPE_BODY)},
        STRIPE_BODY,
        SECRET,
        SENT,
        "evt_1",
    ),
    "gitlab": (
        {"X-Gitlab-Token": "kept secret", "Idempotency-Key": "f5e5f430"},
        b"{}",
        b"kept secret",
        SENT,
        "f5e5f430",
    ),
    # The example of Bitbucket's documentation, "Manage webhooks".
    "bitbucket": (
        {
            "X-Hub-Signature": "sha256=a4771c39fbe90f317c7824e83ddef3caae9cb3d976c214ace1f2937e133263c9",
            "X-Request-UUID": "{7f4d}",
        },
        b"Hello World!",
        b"It's a Secret to Everybody",
        SENT,
        "{7f4d}",
    ),
    "bearer": ({"Authorization": "Bearer kept secret"}, b"{}", b"kept secret", SENT, None),
    "basic": ({"Authorization": basic("ada:pass:word")}, b"{}", b"ada:pass:word", SENT, None),
}


@pytest.mark.parametrize("proof", PROOFS)
class TestNamedProofs:
    """Each proof that a manifest may name, with its sender's published example where there is one."""

    def test_good(self, proof: NamedProof) -> None:
        """The delivery is proved, its id known, and the secret's successor is accepted as well."""
        headers, body, secret, now, event_id = PROOFS[proof]
        assert verify(headers, body, [secret], now, proof) == Proof(event_id, proof)
        assert verify(CIMultiDict(headers), body, [b"old secret", secret], now, proof)

    def test_wrong(self, proof: NamedProof) -> None:
        headers, body, secret, now, _ = PROOFS[proof]
        with pytest.raises(ProofInvalid):
            verify(headers, body, [b"another secret"], now, proof)
        carrier = next(iter(headers)) if proof != "standard-webhooks" else "webhook-signature"
        for value in ("", "x", headers[carrier][:10], "ü§💥", "\udcff"):
            with pytest.raises(ProofInvalid):
                verify(headers | {carrier: value}, body, [secret], now, proof)
        for other in PROOFS.keys() - {proof}:
            with pytest.raises(ProofError):
                verify(headers, body, [secret], now, other)

    def test_missing(self, proof: NamedProof) -> None:
        with pytest.raises(ProofMissing):
            verify({}, b"{}", [b"kept secret"], SENT, proof)

    def test_twice(self, proof: NamedProof) -> None:
        """A header that is sent twice is ambiguous."""
        headers, body, secret, now, _ = PROOFS[proof]
        for name, value in headers.items():
            with pytest.raises(ProofInvalid, match="twice"):
                verify(CIMultiDict([*headers.items(), (name, value)]), body, [secret], now, proof)


@pytest.mark.parametrize("proof", ["slack", "stripe", "standard-webhooks"])
def test_recorded_deliveries(proof: NamedProof) -> None:
    """What is signed with its time is refused later, and when its body or time was changed."""
    headers, body, secret, now, _ = PROOFS[proof]
    later = {name: value.replace(str(int(now)), str(int(now) + 1)) for name, value in headers.items()}
    for changed in ((headers, body, now + 301), (headers, body + b" ", now), (later, body, now)):
        with pytest.raises(ProofInvalid):
            verify(*changed[:2], [secret], changed[2], proof)


@pytest.mark.parametrize("value", ["t=1", f"t={SENT},t={SENT},v1={'0' * 64}", f"v1={'0' * 64}", f"t={SENT}"])
def test_malformed_stripe_signature(value: str) -> None:
    """One time and at least one signature are needed."""
    with pytest.raises(ProofInvalid):
        verify({"Stripe-Signature": value}, STRIPE_BODY, [SECRET], SENT, "stripe")


@pytest.mark.parametrize("body", [b"[" * 100_000, b"{", b"[]", b'{"id": 7}', b'{"id": "a b"}', b"\xff"])
def test_odd_ids_in_the_body(body: bytes) -> None:
    headers = {"Stripe-Signature": stripe_signature(SECRET, body)}
    assert verify(headers, body, [SECRET], SENT, "stripe").event_id is None


_names = st.sampled_from([*HEADERS, "x-hub-signature-256", "x-github-delivery", "other"])


@settings(deadline=None)
@given(
    st.dictionaries(_names, st.text(max_size=80)),
    st.binary(max_size=20),
    st.lists(st.binary(max_size=40), max_size=3),
)
def test_no_input_crashes(headers: dict[str, str], body: bytes, secrets: list[bytes]) -> None:
    """Whatever arrives, the answer is one of the three refusals."""
    with pytest.raises((ProofMissing, ProofInvalid, SecretUnusable)):
        verify(headers, body, secrets, SENT)
