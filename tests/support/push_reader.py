"""A browser's end of Web Push: its keys, and the way back from a message to its text (RFC 8188, RFC 8291)."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF


def plain(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@dataclass
class BrowserKeys:
    """The keys of a subscription."""

    private: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    auth: bytes = b"0123456789abcdef"

    @property
    def point(self) -> bytes:
        return self.private.public_key().public_bytes(
            serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
        )

    def subscription(self, endpoint: str) -> dict[str, str]:
        """Return the subscription as the page sends it."""
        return {"endpoint": endpoint, "p256dh": encoded(self.point), "auth": encoded(self.auth)}

    def read(self, body: bytes) -> bytes:
        """Return the text of a message, which must be one record of aes128gcm."""
        salt, size, length = body[:16], int.from_bytes(body[16:20], "big"), body[20]
        sender, record = body[21 : 21 + length], body[21 + length :]
        assert len(record) <= size
        shared = self.private.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender))
        secret = derived(self.auth, shared, b"WebPush: info\0" + self.point + sender, 32)
        key = derived(salt, secret, b"Content-Encoding: aes128gcm\0", 16)
        text = AESGCM(key).decrypt(derived(salt, secret, b"Content-Encoding: nonce\0", 12), record, None)
        assert text.rstrip(b"\0").endswith(b"\x02")
        return text.rstrip(b"\0")[:-1]


def derived(salt: bytes, key: bytes, info: bytes, length: int) -> bytes:
    return HKDF(hashes.SHA256(), length, salt, info).derive(key)


def claims_of(headers: Mapping[str, str], server_key: str) -> dict[str, Any]:
    """Return the claims of a message's signature, which must be the server's."""
    parts = dict(part.strip().split("=", 1) for part in headers["authorization"].removeprefix("vapid ").split(","))
    assert parts["k"] == server_key
    signed, _, signature = parts["t"].rpartition(".")
    number = plain(signature)
    public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), plain(server_key))
    first, second = int.from_bytes(number[:32], "big"), int.from_bytes(number[32:], "big")
    public.verify(encode_dss_signature(first, second), signed.encode(), ec.ECDSA(hashes.SHA256()))
    return json.loads(plain(signed.partition(".")[2]))
