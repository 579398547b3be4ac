"""Users of an issuer, as the server's gate asks for them: a JWT in, a principal or a refusal out."""

import math

from isthmus.a2a.oidc.claims import ClaimNames, TokenRefused, named_user, user_prefix
from isthmus.a2a.oidc.issuer import Issuer, IssuerUnavailable
from isthmus.a2a.oidc.tokens import LEEWAY, is_jwt, read_head, verify
from isthmus.a2a.server.users.auth import Principal, Refusal


class IssuerUsers:
    """Users of ``issuer`` whose tokens are for ``audience``."""

    def __init__(self, issuer: Issuer, audience: str, names: ClaimNames) -> None:
        self._issuer = issuer
        self._audience = audience
        self._names = names

    async def identify(self, token: str) -> Principal | Refusal | None:
        """Return the principal of a token, or why it is refused; None for a text that is not a JWT."""
        if not is_jwt(token):
            return None
        issuer = self._issuer.url
        try:
            head = read_head(token, issuer)
            claims = verify(token, head, await self._issuer.key_of(head), issuer, self._audience)
            user = named_user(claims, self._names, issuer)
        except TokenRefused as error:
            challenge = f'Bearer error="invalid_token", error_description="{error}"'
            return Refusal(401, str(error), {"WWW-Authenticate": challenge})
        except IssuerUnavailable as error:
            return Refusal(503, str(error), {"Retry-After": f"{max(1, math.ceil(error.seconds))}"})
        return Principal(user.name, tier=user.tier, expires=float(claims["exp"]) + LEEWAY)

    @property
    def discovery_url(self) -> str:
        """URL of the issuer's own description."""
        return self._issuer.discovery_url

    def has(self, name: str) -> bool:
        """Return whether a name is one of a user of this issuer; whether the issuer still knows them is not known."""
        return name.startswith(user_prefix(self._issuer.url, self._names))
