"""Users whom a server lets in beside those with tokens of its own, and the log of what all of them do."""

import contextlib
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.a2a.serving.names import IN_PYTHON, OptionNames, ServingError
from isthmus.encoding.codec import JsonObject
from isthmus.record import record

if TYPE_CHECKING:
    from isthmus.a2a.oidc.users import IssuerUsers
    from isthmus.a2a.server.application import Audit

MISSING = "needs the package PyJWT with cryptography, which is not installed: pip install 'isthmus[oidc]'"


@record
class SignIn:
    """An issuer whose JWTs for ``audience`` name users by the claim ``user_claim``, and perhaps a tier by another."""

    issuer: str
    audience: str
    user_claim: str = "sub"
    tier_claim: str | None = None


@record
class ServedUsers:
    """The users of an issuer, and the writer of the audit log, as long as a server runs; None without one."""

    issued: "IssuerUsers | None"
    audit: "Audit | None"

    @property
    def security_schemes(self) -> Mapping[str, JsonObject] | None:
        """Security schemes of the card; None: a bearer token of the server."""
        if self.issued is None:
            return None
        return {
            "bearer": {"type": "http", "scheme": "bearer"},
            "oidc": {"type": "openIdConnect", "openIdConnectUrl": self.issued.discovery_url},
        }

    def are_issued(self, name: str) -> bool:
        """Return whether this is the name of a user of the issuer."""
        return self.issued is not None and self.issued.has(name)


@contextlib.asynccontextmanager
async def served_users(
    sign_in: SignIn | None, audit_log: Path | None, roots: Sequence[Path], names: OptionNames = IN_PYTHON
) -> AsyncGenerator[ServedUsers]:
    """Let users in as long as the context lasts; ``roots`` are the folders in which they may work.

    Raises:
        ServingError: the options cannot be used together, or here.
    """
    with _audit(audit_log, names) as audit:
        async with _issuer_users(sign_in, roots, names) as issued:
            yield ServedUsers(issued, audit)


@contextlib.contextmanager
def _audit(path: Path | None, names: OptionNames) -> Generator["Audit | None"]:
    if path is None:
        yield None
        return
    from isthmus.a2a.server.logs.audit_file import AuditError, AuditFile

    try:
        file = AuditFile(path)
    except AuditError as error:
        raise ServingError(f"{names.audit_log} {error}") from error
    try:
        yield file.record
    finally:
        file.close()


@contextlib.asynccontextmanager
async def _issuer_users(
    sign_in: SignIn | None, roots: Sequence[Path], names: OptionNames
) -> AsyncGenerator["IssuerUsers | None"]:
    if sign_in is None:
        yield None
        return
    if not roots:
        raise ServingError(f"{names.sign_in} needs folders in which users may work: give {names.workspaces}")
    try:
        from isthmus.a2a.oidc.claims import ClaimNames
        from isthmus.a2a.oidc.issuer import Issuer
        from isthmus.a2a.oidc.keys import IssuerError
        from isthmus.a2a.oidc.users import IssuerUsers
    except ModuleNotFoundError as error:
        raise ServingError(f"{names.sign_in} {MISSING}") from error
    try:
        issuer = Issuer(sign_in.issuer)
    except IssuerError as error:
        raise ServingError(f"{names.sign_in} {error}") from error
    issuer.ask()  # a mistake in the options is in the log before the first user comes
    try:
        yield IssuerUsers(issuer, sign_in.audience, ClaimNames(sign_in.user_claim, sign_in.tier_claim))
    finally:
        await issuer.aclose()
