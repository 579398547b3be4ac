"""Messages of Web Push, encrypted for one browser (RFC 8291) and signed by the server (RFC 8292, VAPID). Pure.

It needs the package ``cryptography``, which the extra ``isthmus[push]`` brings.
"""

import base64
import hmac
import json
import os
from collections.abc import Mapping
from hashlib import sha256

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from isthmus.errors import IsthmusError
from isthmus.record import record

RECORD_BYTES = 4096
"""Size of a record in bytes; a message is one record."""
MAXIMUM_TEXT = 3_500
"""Maximum size in bytes of the text of a message."""
TOKEN_SECONDS = 12 * 3600
"""Time in seconds for which a signature is valid."""
_CURVE = ec.SECP256R1()


class PushKeyError(IsthmusError):
    """Raised when a key is not one of the curve P-256, or has a wrong length."""


@record
class ServerKey:
    """The key pair by which push services know a server; ``private`` is its number in base64url."""

    private: str

    @classmethod
    def new(cls) -> "ServerKey":
        """Return a new key pair."""
        number = ec.generate_private_key(_CURVE).private_numbers().private_value
        return cls(to_base64(number.to_bytes(32, "big")))

    @property
    def public(self) -> str:
        """The public key as an uncompressed point in base64url, which a browser subscribes with."""
        return to_base64(_point(self._key()))

    def authorization(self, origin: str, contact: str, now: float) -> str:
        """Return the Authorization header for messages to a push service until ``now`` and twelve hours.

        ``contact`` is a URL of this server for the operator of the service.
        """
        claims = {"aud": origin, "exp": int(now) + TOKEN_SECONDS, "sub": contact}
        signed = f"{_json64({'typ': 'JWT', 'alg': 'ES256'})}.{_json64(claims)}"
        first, second = decode_dss_signature(self._key().sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        signature = to_base64(first.to_bytes(32, "big") + second.to_bytes(32, "big"))
        return f"vapid t={signed}.{signature}, k={self.public}"

    def _key(self) -> ec.EllipticCurvePrivateKey:
        return _private(from_base64(self.private))


def check_keys(p256dh: str, auth: str) -> None:
    """Check the keys of a subscription.

    Raises:
        PushKeyError: they are not a point of the curve and 16 bytes, in base64url.
    """
    _public(from_base64(p256dh))
    if len(from_base64(auth)) != 16:
        raise PushKeyError("expected auth with 16 bytes in base64url")


def encrypt(text: bytes, p256dh: str, auth: str, *, salt: bytes | None = None, key: str | None = None) -> bytes:
    """Return the body of a message for a subscription; ``salt`` and ``key`` are random but in tests.

    Raises:
        PushKeyError: the keys of the subscription cannot be used.
    """
    if len(text) > MAXIMUM_TEXT:
        raise PushKeyError(f"expected a text of at most {MAXIMUM_TEXT} bytes")
    there = from_base64(p256dh)
    own = ec.generate_private_key(_CURVE) if key is None else _private(from_base64(key))
    salt = os.urandom(16) if salt is None else salt
    shared = own.exchange(ec.ECDH(), _public(there))
    here = _point(own)
    secret = _derived(from_base64(auth), shared, b"WebPush: info\0" + there + here, 32)
    content_key = _derived(salt, secret, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _derived(salt, secret, b"Content-Encoding: nonce\0", 12)
    head = salt + RECORD_BYTES.to_bytes(4, "big") + len(here).to_bytes(1, "big") + here
    return head + AESGCM(content_key).encrypt(nonce, text + b"\x02", None)


def to_base64(data: bytes) -> str:
    """Return bytes in base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def from_base64(text: str) -> bytes:
    """Return the bytes of a text in base64url, with or without padding.

    Raises:
        PushKeyError: it is not a text of this form.
    """
    plain = text.rstrip("=")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), altchars=b"-_", validate=True)
    except ValueError as error:
        raise PushKeyError("expected base64url") from error


def _derived(salt: bytes, key: bytes, info: bytes, length: int) -> bytes:
    """Return at most 32 bytes of HKDF with SHA-256."""
    extracted = hmac.digest(salt, key, sha256)
    return hmac.digest(extracted, info + b"\x01", sha256)[:length]


def _private(number: bytes) -> ec.EllipticCurvePrivateKey:
    try:
        return ec.derive_private_key(int.from_bytes(number, "big"), _CURVE)
    except ValueError as error:
        raise PushKeyError("expected the number of a private key of P-256") from error


def _public(point: bytes) -> ec.EllipticCurvePublicKey:
    try:
        if len(point) != 65:
            raise ValueError(len(point))
        return ec.EllipticCurvePublicKey.from_encoded_point(_CURVE, point)
    except ValueError as error:
        raise PushKeyError("expected p256dh with an uncompressed point of P-256 in base64url") from error


def _point(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)


def _json64(value: Mapping[str, object]) -> str:
    return to_base64(json.dumps(value, separators=(",", ":")).encode())
