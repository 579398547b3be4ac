"""Users of ``serve`` beside those with tokens of the server: those of an OpenID Connect issuer, and what is logged."""

import contextlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.app.setup import BadInputError
from isthmus.encoding.codec import JsonObject
from isthmus.record import record

if TYPE_CHECKING:
    from isthmus.a2a.oidc.users import IssuerUsers

MISSING = "--oidc-issuer needs the package PyJWT with cryptography, which is not installed: pip install 'isthmus[oidc]'"


@record
class SignIn:
    """An issuer whose JWTs for ``audience`` name users by the claim ``user_claim``, and perhaps a tier by another."""

    issuer: str
    audience: str
    user_claim: str = "sub"
    tier_claim: str | None = None


@contextlib.asynccontextmanager
async def issuer_users(sign_in: SignIn | None, roots: Sequence[Path]) -> AsyncGenerator["IssuerUsers | None"]:
    """Let the users of an issuer in as long as the context lasts; ``roots`` are the folders in which users may work.

    Raises:
        BadInputError: there are no such folders, the URL is not an issuer's, or a package is missing.
    """
    if sign_in is None:
        yield None
        return
    if not roots:
        raise BadInputError("--oidc-issuer needs folders in which users may work: give --workspace DIR")
    try:
        from isthmus.a2a.oidc.claims import ClaimNames
        from isthmus.a2a.oidc.issuer import Issuer
        from isthmus.a2a.oidc.keys import IssuerError
        from isthmus.a2a.oidc.users import IssuerUsers
    except ModuleNotFoundError as error:
        raise BadInputError(MISSING) from error
    try:
        issuer = Issuer(sign_in.issuer)
    except IssuerError as error:
        raise BadInputError(f"--oidc-issuer {error}") from error
    issuer.ask()  # a mistake in the options is in the log before the first user comes
    try:
        yield IssuerUsers(issuer, sign_in.audience, ClaimNames(sign_in.user_claim, sign_in.tier_claim))
    finally:
        await issuer.aclose()


def security_schemes(issued: "IssuerUsers | None") -> Mapping[str, JsonObject] | None:
    """Return the security schemes of the card; None: a bearer token of the server."""
    if issued is None:
        return None
    return {
        "bearer": {"type": "http", "scheme": "bearer"},
        "oidc": {"type": "openIdConnect", "openIdConnectUrl": issued.discovery_url},
    }
