"""Users of an OpenID Connect issuer: their bearer tokens are JWTs, which are verified with the issuer's published keys.

The port that the server sees is :class:`isthmus.a2a.server.auth.IssuedTokens`.
"""
