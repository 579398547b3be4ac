"""The keys that an issuer publishes (JWKS), and the algorithms that each may be used with. Sans-I/O.

Only public keys are accepted, so that nobody who knows what is published can sign.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from isthmus.encoding import json_text
from isthmus.encoding.json_text import JsonError
from isthmus.errors import IsthmusError
from isthmus.record import record

MAXIMUM_KEYS = 100
"""Maximum number of keys of an issuer that are read."""
RSA_BITS = (2048, 16_384)
"""Smallest and largest size of an RSA key."""
_ALGORITHMS: Mapping[tuple[str, str | None], tuple[str, ...]] = MappingProxyType(
    {
        ("RSA", None): ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
        ("EC", "P-256"): ("ES256",),
        ("EC", "P-384"): ("ES384",),
        ("EC", "P-521"): ("ES512",),
        ("OKP", "Ed25519"): ("EdDSA",),
    }
)
"""Algorithms of each type and curve of keys."""
ALGORITHMS = frozenset(name for names in _ALGORITHMS.values() for name in names)
"""Algorithms of signatures that are accepted. All are asymmetric."""
_PUBLIC = ("kty", "crv", "n", "e", "x", "y")


class IssuerError(IsthmusError):
    """The issuer could not be asked for its keys, or its answer cannot be used."""


@record
class IssuerKey:
    """A public key: its id (None if it has none), and the key as each of its algorithms needs it."""

    kid: str | None
    forms: Mapping[str, jwt.PyJWK]


def read_keys(data: bytes) -> tuple[IssuerKey, ...]:
    """Return the usable keys of a JWKS; others, e.g. for encryption, are left out.

    Raises:
        IssuerError: it is not a JWKS, or has no usable key.
    """
    try:
        value: Any = json_text.decode(data)
        listed: Any = value["keys"]
    except (JsonError, KeyError, TypeError) as error:
        raise IssuerError("its keys are not a JSON object with a list of keys") from error
    if not isinstance(listed, list):
        raise IssuerError("its keys are not a JSON object with a list of keys")
    read = [_read_key(item) for item in cast("list[object]", listed)[:MAXIMUM_KEYS]]
    found = tuple(key for key in read if key is not None)
    if not found:
        raise IssuerError(
            "it publishes no key that can be used: expected RSA of 2048 bits or more, P-256, P-384, P-521 or Ed25519"
        )
    return found


def find_key(keys: Sequence[IssuerKey], kid: str | None, algorithm: str) -> jwt.PyJWK | None:
    """Return the key with this id for this algorithm; for a token that names no key, the only one, if there is one."""
    fitting = [key.forms[algorithm] for key in keys if algorithm in key.forms and (kid is None or key.kid == kid)]
    return fitting[0] if len(fitting) == 1 or (fitting and kid is not None) else None


def _read_key(item: object) -> IssuerKey | None:
    if not isinstance(item, dict):
        return None
    key = cast("dict[str, Any]", item)
    kid, operations, stated = key.get("kid"), key.get("key_ops"), key.get("alg")
    if not isinstance(kid, str | None) or key.get("use", "sig") != "sig":
        return None
    if isinstance(operations, list) and "verify" not in operations:
        return None
    kind, curve = key.get("kty"), key.get("crv")
    if not isinstance(kind, str) or not isinstance(curve, str | None):
        return None
    names = [name for name in _ALGORITHMS.get((kind, curve), ()) if stated is None or stated == name]
    public = {name: key[name] for name in _PUBLIC if name in key}
    forms: dict[str, jwt.PyJWK] = {}
    for name in names:
        try:
            form = jwt.PyJWK(public, name)
        except (jwt.PyJWTError, ValueError, TypeError, KeyError):
            return None
        if isinstance(form.key, RSAPublicKey) and not RSA_BITS[0] <= form.key.key_size <= RSA_BITS[1]:
            return None
        forms[name] = form
    return IssuerKey(kid, forms) if forms else None
