"""Callback secrets at rest: AES-256-GCM under DRAGOMAN_SEALING_KEY, each bound to the job that it belongs to.

A sealed secret is the text `v1.` and Base64url of nonce, ciphertext and tag. In another job's row, changed by
one bit, or under another key, it does not open. The nonce is handed in (`identity.nonce`): under one key, one
nonce seals one secret. The key comes as text from the settings; this module reads no environment.
"""

from __future__ import annotations

import base64

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from dragoman.kernel.errors import SettingsError
from dragoman.kernel.identity import NONCE_BYTES

KEY_BYTES = 32

_VERSION = "v1."


class Sealer:
    """Seals and opens under one key: 32 bytes as Base64 or Base64url, as `identity.secret()` makes them.

    Raises `SettingsError`: sealing_key_missing where the text is empty, else invalid_settings.
    """

    def __init__(self, key: str) -> None:
        self._cipher = AESGCM(_key_bytes(key))

    def seal(self, secret: str, job_id: str, nonce: bytes) -> str:
        """`secret` as text fit for a row of job `job_id`. `nonce` is 12 fresh random bytes."""
        if len(nonce) != NONCE_BYTES:
            raise ValueError(f"a nonce has {NONCE_BYTES} bytes, not {len(nonce)}")
        sealed = self._cipher.encrypt(nonce, secret.encode("utf-8"), job_id.encode("utf-8"))
        return _VERSION + base64.urlsafe_b64encode(nonce + sealed).decode("ascii")

    def open(self, sealed: str, job_id: str) -> str:
        """What `seal` was given for this job. Where key, job and text do not agree, `SettingsError`."""
        try:
            data = _unpadded(sealed.removeprefix(_VERSION)) if sealed.startswith(_VERSION) else b""
            plain = self._cipher.decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], job_id.encode("utf-8"))
        except (InvalidTag, ValueError):
            raise SettingsError(
                f"the callback secret of job {job_id} does not open under this DRAGOMAN_SEALING_KEY: "
                "set the key that sealed it"
            ) from None
        return plain.decode("utf-8")


def _key_bytes(key: str) -> bytes:
    if not key.strip():
        raise SettingsError("DRAGOMAN_SEALING_KEY is not set", "sealing_key_missing")
    try:
        data = _unpadded(key.strip())
    except ValueError:
        data = b""
    if len(data) != KEY_BYTES:
        raise SettingsError(
            f"DRAGOMAN_SEALING_KEY is not {KEY_BYTES} bytes in Base64 (`openssl rand -base64 32`)"
        )
    return data


def _unpadded(text: str) -> bytes:
    """Base64 in either alphabet, with or without its padding."""
    standard = text.rstrip("=").replace("-", "+").replace("_", "/")
    return base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)
