"""The user and tier that the claims of a verified token name. Sans-I/O.

An issuer may let its users choose parts of their claims, so that no claim is taken as it is.
"""

from collections.abc import Mapping
from typing import Any

from isthmus.errors import IsthmusError
from isthmus.record import record

MAXIMUM_USER = 128
"""Maximum number of characters of the claim that names a user."""
MAXIMUM_TIER = 64
"""Maximum number of characters of the claim that names a tier."""


class TokenRefused(IsthmusError):
    """A token does not name a user. The text repeats nothing of the token, and has no quotation marks."""


@record
class ClaimNames:
    """Names of the claims that have the user and, if users have tiers, the tier; none contains ``=``."""

    user: str = "sub"
    tier: str | None = None


@record
class NamedUser:
    """A user by the name that the server knows, and the tier; None leaves the tier to the server."""

    name: str
    tier: str | None = None


def user_prefix(issuer: str, names: ClaimNames) -> str:
    """Return the beginning of the names of an issuer's users; the names of no other users begin so.

    ``#`` is neither in the names of users with tokens nor in an issuer's URL. The same value of another claim, or of
    another issuer, may belong to somebody else.
    """
    return f"{issuer.removeprefix('https://').rstrip('/')}#{names.user}="


def named_user(claims: Mapping[str, Any], names: ClaimNames, issuer: str) -> NamedUser:
    """Return the user of verified claims.

    Raises:
        TokenRefused: the claims do not name a user, or name one by a text that is not a plain line.
    """
    user = _line(claims, names.user, MAXIMUM_USER)
    if user is None:
        raise TokenRefused(f"the token does not have the claim {names.user}, which names the user")
    if names.user == "email" and claims.get("email_verified") is not True:
        # Otherwise a user could name somebody else's address at an issuer that does not check it.
        raise TokenRefused("the token does not say that the email address is verified (email_verified)")
    tier = _line(claims, names.tier, MAXIMUM_TIER) if names.tier is not None else None
    return NamedUser(user_prefix(issuer, names) + user, tier)


def _line(claims: Mapping[str, Any], name: str, maximum: int) -> str | None:
    value = claims.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not 0 < len(value) <= maximum or not value.isprintable() or value != value.strip():
        raise TokenRefused(f"the claim {name} is not a text of 1 to {maximum} printable characters")
    return value
