"""Signatures of what is sent between engine and site, in two schemes side by side.

The timestamp scheme is HMAC-SHA256 over `timestamp + "." + raw_body`, as `X-Dragoman-Signature: sha256=<hex>`
(seed 000 gives the rule and no header names: these are ours). Standard Webhooks is HMAC-SHA256 over
`id + "." + timestamp + "." + raw_body`, as `webhook-signature: v1,<base64>`; a secret that begins with
`whsec_` is Base64 there, any other is taken as its UTF-8 bytes, as the timestamp scheme takes every secret.
The caller says which secrets are live and what time it is; this module knows neither.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence

from dragoman.kernel import limits
from dragoman.kernel.errors import CallerError, SettingsError

TIMESTAMP = "X-Dragoman-Timestamp"
SIGNATURE = "X-Dragoman-Signature"
DELIVERY_ID = "X-Dragoman-Delivery-Id"
EVENT = "X-Dragoman-Event"
"""The kind of event, for routers and logs. No scheme signs it: the body decides."""
WEBHOOK_ID = "webhook-id"
WEBHOOK_TIMESTAMP = "webhook-timestamp"
WEBHOOK_SIGNATURE = "webhook-signature"

_ENCODED_SECRET = "whsec_"  # noqa: S105 - the prefix that Standard Webhooks gives to its secrets
_SECONDS = re.compile(r"[0-9]{1,12}")


def sign(secret: str, delivery_id: str, timestamp_seconds: int, body: bytes) -> dict[str, str]:
    """The headers of one attempt to deliver `body`, both schemes. A weak secret raises `SettingsError`."""
    moment = str(timestamp_seconds)
    return {
        TIMESTAMP: moment,
        SIGNATURE: _timestamp_signature(secret, moment, body),
        DELIVERY_ID: delivery_id,
        WEBHOOK_ID: delivery_id,
        WEBHOOK_TIMESTAMP: moment,
        WEBHOOK_SIGNATURE: _webhook_signature(secret, delivery_id, moment, body),
    }


def mark(secret: str) -> str:
    """Sixteen characters that tell a secret from others, and tell nobody what it is."""
    return hmac.new(secret.encode(), b"mark of a callback secret", hashlib.sha256).hexdigest()[:16]


def verify(secrets: Sequence[str], headers: Mapping[str, str], body: bytes, now_seconds: int) -> None:
    """Returns if a live secret signed `body` within ±300 s of now, else raises `CallerError` unauthorized.

    At least one scheme must be there, and each that is there must hold; where both name a delivery, it is the
    same. Header names have no case. Every secret is tried, so that the time taken tells nothing of them.
    """
    given = {name.lower(): value for name, value in headers.items()}
    stamped = SIGNATURE.lower() in given
    webhook = WEBHOOK_SIGNATURE in given
    if not stamped and not webhook:
        raise _refusal(f"neither {SIGNATURE} nor {WEBHOOK_SIGNATURE} is there")
    if stamped:
        moment = _moment(given, TIMESTAMP, now_seconds)
        _match([_timestamp_signature(secret, moment, body) for secret in secrets], [given[SIGNATURE.lower()]])
    if webhook:
        moment = _moment(given, WEBHOOK_TIMESTAMP, now_seconds)
        name = _required(given, WEBHOOK_ID)
        wanted = [_webhook_signature(secret, name, moment, body) for secret in secrets]
        _match(wanted, given[WEBHOOK_SIGNATURE].split())
        if given.get(DELIVERY_ID.lower(), name) != name:
            raise _refusal(f"{DELIVERY_ID} and {WEBHOOK_ID} differ")


def _timestamp_signature(secret: str, moment: str, body: bytes) -> str:
    key = _strong(secret.encode("utf-8"))
    return "sha256=" + hmac.new(key, moment.encode("ascii") + b"." + body, hashlib.sha256).hexdigest()


def _webhook_signature(secret: str, name: str, moment: str, body: bytes) -> str:
    signed = f"{name}.{moment}.".encode("utf-8", "surrogateescape") + body
    digest = hmac.new(_webhook_key(secret), signed, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode("ascii")


def _webhook_key(secret: str) -> bytes:
    if not secret.startswith(_ENCODED_SECRET):
        return _strong(secret.encode("utf-8"))
    encoded = secret.removeprefix(_ENCODED_SECRET)
    try:
        return _strong(base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True))
    except ValueError:
        raise SettingsError(
            "a callback secret that begins with whsec_ goes on in Base64; this one does not"
        ) from None


def _strong(key: bytes) -> bytes:
    """A key that anybody could guess signs nothing and verifies nothing."""
    if len(key) < limits.CALLBACK_SECRET_BYTES_MIN:
        raise SettingsError(
            f"a callback secret has at least {limits.CALLBACK_SECRET_BYTES_MIN} bytes; this one is shorter"
        )
    return key


def _match(wanted: Sequence[str], given: Sequence[str]) -> None:
    answers = [
        hmac.compare_digest(one.encode("ascii"), other.encode("utf-8", "surrogateescape"))
        for one in wanted
        for other in given
    ]
    if not any(answers):
        raise _refusal("no live secret made this signature for this body")


def _moment(given: Mapping[str, str], header: str, now_seconds: int) -> str:
    """The timestamp as it was sent, for those are the bytes that were signed."""
    text = _required(given, header)
    if not _SECONDS.fullmatch(text):
        raise _refusal(f"{header} is not a number of seconds")
    if abs(int(text) - now_seconds) > limits.CALLBACK_CLOCK_SECONDS:
        raise _refusal(f"{header} lies more than {limits.CALLBACK_CLOCK_SECONDS} seconds from this clock")
    return text


def _required(given: Mapping[str, str], header: str) -> str:
    value = given.get(header.lower(), "")
    if not value:
        raise _refusal(f"{header} is missing")
    return value


def _refusal(why: str) -> CallerError:
    return CallerError(f"the signature does not verify: {why}", "unauthorized")
