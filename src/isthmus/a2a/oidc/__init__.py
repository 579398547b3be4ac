"""Users of an OpenID Connect issuer: their bearer tokens are JWTs, which are verified with the issuer's published keys.

The server sees :data:`isthmus.a2a.server.users.auth.IdentifyIssued` alone.
"""
