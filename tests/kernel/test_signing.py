"""Both signature schemes, with the Standard Webhooks library as the oracle of the second."""

from __future__ import annotations

import base64
import hashlib
import hmac
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from dragoman.kernel import signing
from dragoman.kernel.errors import CallerError, SettingsError

SECRET = "a secret of the site"
OTHER = "whsec_" + base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()
NOW = 1_790_000_000
BODY = '{"status":"completed","ref":"straße"}'.encode()
ID = "0190f7a0-0000-7000-8000-000000000001"

STAMPED = (signing.TIMESTAMP, signing.SIGNATURE, signing.DELIVERY_ID)
WEBHOOK = (signing.WEBHOOK_ID, signing.WEBHOOK_TIMESTAMP, signing.WEBHOOK_SIGNATURE)


def signed(*names: str, secret: str = SECRET, moment: int = NOW) -> dict[str, str]:
    headers = signing.sign(secret, ID, moment, BODY)
    return {name: headers[name] for name in names} if names else headers


def test_the_seeds_signature_is_hmac_sha256_over_timestamp_dot_body() -> None:
    """[M-237]"""
    headers = signed()
    digest = hmac.new(SECRET.encode(), f"{NOW}.".encode() + BODY, hashlib.sha256).hexdigest()
    assert headers[signing.TIMESTAMP] == str(NOW)
    assert headers[signing.SIGNATURE] == f"sha256={digest}"
    assert headers[signing.DELIVERY_ID] == headers[signing.WEBHOOK_ID] == ID


def test_a_new_attempt_has_a_new_timestamp_and_signatures_and_the_same_id() -> None:
    first, second = signed(), signed(moment=NOW + 7)
    assert {name for name in first if first[name] == second[name]} == {
        signing.DELIVERY_ID,
        signing.WEBHOOK_ID,
    }


def oracle(secret: str) -> Webhook:
    return Webhook(secret if secret.startswith("whsec_") else secret.encode())


@pytest.mark.parametrize("secret", [SECRET, OTHER])
def test_the_reference_library_accepts_what_we_sign(secret: str) -> None:
    moment = int(datetime.now(UTC).timestamp())
    oracle(secret).verify(BODY, signing.sign(secret, ID, moment, BODY))
    with pytest.raises(WebhookVerificationError):
        oracle(secret).verify(BODY + b" ", signing.sign(secret, ID, moment, BODY))


@given(st.binary(min_size=16, max_size=64), st.text(st.characters(codec="utf-8"), max_size=40), st.uuids())
def test_we_accept_what_the_reference_library_signs(key: bytes, body: str, name: object) -> None:
    secret = "whsec_" + base64.b64encode(key).decode()
    signature = Webhook(secret).sign(str(name), datetime.fromtimestamp(NOW, UTC), body)
    headers = {"Webhook-Id": str(name), "Webhook-Timestamp": str(NOW), "Webhook-Signature": signature}
    signing.verify([secret], headers, body.encode(), NOW)
    assert signing.sign(secret, str(name), NOW, body.encode())[signing.WEBHOOK_SIGNATURE] == signature


def test_a_whsec_secret_may_come_without_its_padding() -> None:
    assert (
        signed(secret=OTHER.rstrip("="))[signing.WEBHOOK_SIGNATURE]
        == (signed(secret=OTHER)[signing.WEBHOOK_SIGNATURE])
    )


@pytest.mark.parametrize("names", [STAMPED, WEBHOOK, (*STAMPED, *WEBHOOK)])
@pytest.mark.parametrize("case", [str.lower, str.upper, str.title])
def test_either_scheme_alone_verifies_under_any_spelling_of_the_header_names(
    names: tuple[str, ...], case: object
) -> None:
    assert callable(case)
    headers = {case(name): value for name, value in signed(*names).items()}
    signing.verify([SECRET], headers, BODY, NOW)


def test_during_a_rotation_both_secrets_verify_and_no_third() -> None:
    for live in (SECRET, OTHER):
        signing.verify([OTHER, SECRET], signed(secret=live), BODY, NOW)
    with pytest.raises(CallerError):
        signing.verify([OTHER, SECRET], signed(secret="another secret of a site"), BODY, NOW)


def test_one_of_several_webhook_signatures_is_enough() -> None:
    headers = signed(*WEBHOOK)
    headers[signing.WEBHOOK_SIGNATURE] = f"v1a,AAAA v1,AAAA {headers[signing.WEBHOOK_SIGNATURE]} ü"
    signing.verify([SECRET], headers, BODY, NOW)


@pytest.mark.parametrize("names", [STAMPED, WEBHOOK])
@pytest.mark.parametrize("drift", [-300, -1, 0, 300])
def test_a_timestamp_within_five_minutes_is_accepted(names: tuple[str, ...], drift: int) -> None:
    """[M-315]"""
    signing.verify([SECRET], signed(*names), BODY, NOW + drift)


@pytest.mark.parametrize("names", [STAMPED, WEBHOOK])
@pytest.mark.parametrize("drift", [-301, 301, NOW])
def test_a_timestamp_beyond_five_minutes_is_refused(names: tuple[str, ...], drift: int) -> None:
    """[M-315]"""
    with pytest.raises(CallerError, match="300 seconds") as refusal:
        signing.verify([SECRET], signed(*names), BODY, NOW - drift)
    assert refusal.value.code == "unauthorized"


@pytest.mark.parametrize("name", [*STAMPED[:2], *WEBHOOK])
@pytest.mark.parametrize(
    "damage",
    [
        lambda value: "",
        lambda value: value[:-1],
        lambda value: value + "0",
        lambda value: "é" + value,
        lambda value: value.replace("=", "", 1) if "=" in value else "x",
    ],
    ids=["emptied", "shortened", "lengthened", "not-ascii", "broken"],
)
def test_damage_to_any_signed_header_is_refused(name: str, damage: object) -> None:
    """Also where the other scheme's headers are whole: whatever is there must hold."""
    assert callable(damage)
    headers = signed()
    headers[name] = damage(headers[name])
    with pytest.raises(CallerError) as refusal:
        signing.verify([SECRET], headers, BODY, NOW)
    assert refusal.value.code == "unauthorized"


@given(st.integers(0, len(BODY) - 1), st.integers(1, 255))
def test_one_changed_byte_of_the_body_is_refused(position: int, change: int) -> None:
    body = bytearray(BODY)
    body[position] ^= change
    for names in (STAMPED, WEBHOOK):
        with pytest.raises(CallerError, match="no live secret"):
            signing.verify([SECRET], signed(*names), bytes(body), NOW)


@pytest.mark.parametrize("name", [signing.TIMESTAMP, signing.WEBHOOK_TIMESTAMP, signing.WEBHOOK_ID])
def test_a_missing_companion_header_is_named(name: str) -> None:
    headers = signed()
    del headers[name]
    with pytest.raises(CallerError, match=f"{name} is missing"):
        signing.verify([SECRET], headers, BODY, NOW)


def test_a_request_without_any_signature_is_refused() -> None:
    with pytest.raises(CallerError, match="neither"):
        signing.verify([SECRET], {"content-type": "application/json"}, BODY, NOW)


def test_without_a_live_secret_nothing_verifies() -> None:
    with pytest.raises(CallerError, match="no live secret"):
        signing.verify([], signed(), BODY, NOW)


@pytest.mark.parametrize(("names", "schemes"), [(STAMPED, 1), (WEBHOOK, 1), ((*STAMPED, *WEBHOOK), 2)])
def test_every_secret_is_compared_in_constant_time_whichever_fits(
    names: tuple[str, ...], schemes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[M-315] No early exit tells by its time which secret fits, and no comparison is an ordinary one."""
    compared: list[bool] = []
    constant_time = hmac.compare_digest

    def counted(one: bytes, other: bytes) -> bool:
        compared.append(constant_time(one, other))
        return compared[-1]

    monkeypatch.setattr(hmac, "compare_digest", counted)
    signing.verify([SECRET, OTHER, "a third secret of it"], signed(*names), BODY, NOW)
    assert compared == [True, False, False] * schemes


def test_the_unsigned_delivery_id_must_agree_with_the_signed_one() -> None:
    headers = signed() | {signing.DELIVERY_ID: "0190f7a0-0000-7000-8000-000000000002"}
    with pytest.raises(CallerError, match="differ"):
        signing.verify([SECRET], headers, BODY, NOW)


@pytest.mark.parametrize(
    "secret",
    ["", "x" * 15, "whsec_", "whsec_c2hvcnQ=", "whsec_not base64 at all, as one sees", "whsec_" + "é" * 32],
)
def test_a_secret_that_could_be_guessed_or_read_wrongly_signs_and_verifies_nothing(secret: str) -> None:
    with pytest.raises(SettingsError) as refusal:
        signing.sign(secret, ID, NOW, BODY)
    assert not secret or secret not in refusal.value.message
    with pytest.raises(SettingsError):
        signing.verify([SECRET, secret], signed(), BODY, NOW)


def test_refusals_name_no_secret_and_no_signature() -> None:
    headers = signed(secret=OTHER)
    with pytest.raises(CallerError) as refusal:
        signing.verify([SECRET], headers, BODY, NOW)
    for private in (SECRET, OTHER, *headers.values()):
        assert private not in str(refusal.value)
