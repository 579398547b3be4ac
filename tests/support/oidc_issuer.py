"""An OpenID Connect issuer: a real HTTP server with keys of its own, whose tokens a test makes as it likes."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from isthmus.a2a.oidc.claims import ClaimNames
from isthmus.a2a.oidc.issuer import Issuer
from isthmus.a2a.oidc.users import IssuerUsers
from isthmus.a2a.server.users.auth import Refusal
from support.wire_server import Answer, Respond, WireRequest, WireServer

AUDIENCE = "isthmus"
DOCUMENT = "/.well-known/openid-configuration"
PrivateKey: TypeAlias = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


@cache
def rsa_key(bits: int = 2048, number: int = 0) -> rsa.RSAPrivateKey:
    """Return a key, the same one for all tests of a process: to make one takes a tenth of a second."""
    return rsa.generate_private_key(65537, bits)


@cache
def ec_key(curve: type[ec.EllipticCurve] = ec.SECP256R1, number: int = 0) -> ec.EllipticCurvePrivateKey:
    """Return a key, the same one for all tests of a process."""
    return ec.generate_private_key(curve())


def public_jwk(key: PrivateKey, **members: Any) -> dict[str, Any]:
    """Return the public part of a key as JWKS has it."""
    match key:
        case rsa.RSAPrivateKey():
            found = RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
        case ec.EllipticCurvePrivateKey():
            found = ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
        case _:
            found = OKPAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return {**found, **members}


@dataclass(slots=True)
class OidcIssuer:
    """The issuer; what it answers may be changed while it runs.

    ``keys`` are those that it publishes, by their ids. ``document`` has additional or replaced members. An ``answer``
    replaces that of a path.
    """

    server: WireServer
    keys: dict[str, PrivateKey] = field(default_factory=dict[str, PrivateKey])
    document: dict[str, Any] = field(default_factory=dict[str, Any])
    published: list[dict[str, Any]] | None = None
    """Keys that it publishes instead of ``keys``."""
    answers: dict[str, Answer] = field(default_factory=dict[str, Answer])

    @property
    def url(self) -> str:
        """URL of the issuer."""
        return self.server.base_url

    @property
    def asked(self) -> list[str]:
        """Paths of all requests."""
        return [request.path for request in self.server.requests]

    def respond(self, request: WireRequest) -> Answer:
        """Return the answer to a request."""
        if request.path in self.answers:
            return self.answers[request.path]
        if request.path == DOCUMENT:
            return Answer.json({"issuer": self.url, "jwks_uri": f"{self.url}/keys", **self.document})
        if request.path == "/keys":
            keys = [public_jwk(key, kid=kid, use="sig") for kid, key in self.keys.items()]
            return Answer.json({"keys": keys if self.published is None else self.published})
        return Answer(404)

    def go_away(self) -> None:
        """Answer all further requests with an error."""
        self.answers = {path: Answer(503) for path in (DOCUMENT, "/keys")}

    def claims(self, **claims: Any) -> dict[str, Any]:
        """Return the claims of a valid token, with some added, replaced, or left out (None)."""
        now = int(time.time())
        usual = {"iss": self.url, "aud": AUDIENCE, "sub": "248289761001", "iat": now, "exp": now + 300}
        return {name: value for name, value in {**usual, **claims}.items() if value is not None}

    def token(
        self, kid: str = "rsa", algorithm: str = "RS256", headers: Mapping[str, Any] | None = None, **claims: Any
    ) -> str:
        """Return a token, signed with the key of this id."""
        payload = json.dumps(self.claims(**claims)).encode()  # PyJWT would refuse claims that tests need
        return jwt.PyJWS().encode(payload, self.keys[kid], algorithm, {"kid": kid, **(headers or {})})

    def forged(self, head: Mapping[str, Any], secret: bytes = b"", **claims: Any) -> str:
        """Return a token with any head, signed by HMAC with this secret, or not at all."""
        content = b".".join(_encoded(json.dumps(part).encode()) for part in (head, self.claims(**claims)))
        signature = hmac.digest(secret, content, hashlib.sha256) if secret else b""
        return f"{content.decode()}.{_encoded(signature).decode()}"

    def public_pem(self, kid: str = "rsa") -> bytes:
        """Return a public key as everybody may know it."""
        return self.keys[kid].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def oidc_issuer() -> OidcIssuer:
    """Return an issuer with an RSA key ``rsa`` and a P-256 key ``ec``; use ``with issuer.server`` to run it."""
    found: list[OidcIssuer] = []
    respond: Respond = lambda request: found[0].respond(request)  # noqa: E731 - the issuer needs its server first
    found.append(OidcIssuer(WireServer(respond), {"rsa": rsa_key(), "ec": ec_key()}))
    return found[0]


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def users_of(issuer: OidcIssuer, names: ClaimNames | None = None, clock: Clock | None = None) -> IssuerUsers:
    """Return the users of an issuer, by a clock that stands still unless another one is given."""
    return IssuerUsers(Issuer(issuer.url, clock=clock or Clock()), AUDIENCE, names or ClaimNames())


async def refused(users: IssuerUsers, token: str, status: int = 401) -> Refusal:
    """Return the refusal of a token, which repeats no part of it."""
    found = await users.identify(token)
    assert isinstance(found, Refusal)
    assert found.status == status, found.message
    shown = found.message + str(dict(found.headers))
    assert not any(part in shown for part in token.split(".") if len(part) > 8)
    if status == 401:
        challenge = found.headers["WWW-Authenticate"]
        assert challenge == f'Bearer error="invalid_token", error_description="{found.message}"'
        assert found.message.isascii()
        assert '"' not in found.message
        assert "\\" not in found.message
    return found


def _encoded(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")
