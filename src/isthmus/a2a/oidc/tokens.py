"""Verifies a JWT: its form, its signature by a given key, its issuer, audience and times. Sans-I/O.

The cryptography and the checks of times are PyJWT's. The texts of errors are of our own: they go to strangers, and
repeat nothing that a token contains.
"""

import math
import re
from collections.abc import Mapping
from typing import Any

import jwt

from isthmus.a2a.oidc.claims import TokenRefused
from isthmus.a2a.oidc.keys import ALGORITHMS
from isthmus.record import record

LEEWAY = 30.0
"""Difference in seconds between the issuer's clock and ours that is tolerated."""
MAXIMUM_CHARACTERS = 16_384
"""Maximum size of a token."""
MAXIMUM_KID = 512
"""Maximum number of characters of the id of a key."""
LATEST = 253_402_300_799.0
"""Latest time of expiry in Unix seconds: the end of the year 9999."""
_JWT = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*")
_MALFORMED = "the token is not a well-formed JWT"
# PyJWT raises its own errors for most input, and those of Python for numbers and nesting beyond all measure.
_FAULTS = (jwt.PyJWTError, ValueError, TypeError, KeyError, OverflowError, RecursionError)


@record
class TokenHead:
    """The parts of an unverified token that choose the key: algorithm and id of the key, if it names one."""

    algorithm: str
    kid: str | None


def is_jwt(token: str) -> bool:
    """Return whether a token has the form of a signed JWT; tokens of the server itself never have it."""
    return _JWT.fullmatch(token) is not None


def read_head(token: str, issuer: str) -> TokenHead:
    """Return the head of a token that claims to be of this issuer.

    Raises:
        TokenRefused: it is too large, malformed, of another issuer, or signed in a way that is not accepted.
    """
    if len(token) > MAXIMUM_CHARACTERS:
        raise TokenRefused(f"the token has more than {MAXIMUM_CHARACTERS} characters")
    try:
        whole = jwt.decode_complete(token, options={"verify_signature": False})
    except _FAULTS:
        raise TokenRefused(_MALFORMED) from None
    header, claims = whole["header"], whole["payload"]
    algorithm, kid = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise TokenRefused(f"the token is not signed by one of these algorithms: {', '.join(sorted(ALGORITHMS))}")
    if not isinstance(kid, str | None) or (kid is not None and len(kid) > MAXIMUM_KID):
        raise TokenRefused(_MALFORMED)
    if claims.get("iss") != issuer:
        raise TokenRefused("the token is of another issuer than this server accepts")
    return TokenHead(algorithm, kid)


def verify(token: str, head: TokenHead, key: jwt.PyJWK, issuer: str, audience: str) -> Mapping[str, Any]:
    """Return the claims of a token that this key has signed; ``exp`` is a number of Unix seconds up to LATEST.

    Raises:
        TokenRefused: the signature is wrong, the token is not valid at this time or not for this audience.
    """
    try:
        claims = jwt.decode(
            token,
            key,
            algorithms=[head.algorithm],
            audience=audience,
            issuer=issuer,
            leeway=LEEWAY,
            options={"require": ["exp", "iss", "aud"]},
        )
    except jwt.ExpiredSignatureError:
        raise TokenRefused("the token has expired") from None
    except jwt.ImmatureSignatureError:
        raise TokenRefused("the token is not valid yet") from None
    except jwt.MissingRequiredClaimError as error:
        raise TokenRefused(f"the token does not have the claim {error.claim}") from None
    except jwt.InvalidAudienceError:
        raise TokenRefused("the token is for another audience than this server") from None
    except jwt.InvalidSignatureError:
        raise TokenRefused("the signature of the token is wrong") from None
    except _FAULTS:
        raise TokenRefused(_MALFORMED) from None
    expires: Any = claims.get("exp")
    if isinstance(expires, bool) or not isinstance(expires, int | float) or not _is_time(expires):
        raise TokenRefused("the claim exp of the token is not a time in seconds")
    return claims


def _is_time(value: float) -> bool:
    return (isinstance(value, int) or math.isfinite(value)) and 0 <= value <= LATEST
