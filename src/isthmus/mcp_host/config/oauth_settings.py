"""The key ``oauth`` of a server's settings, decoded: the login of a user or of a machine. Pure.

Only the user's own settings may name a file with a key or a token: otherwise a project's settings could send any file
of the user's account to a server. Not here: logging in, see :mod:`isthmus.mcp_host.oauth`.
"""

from dataclasses import field
from enum import StrEnum
from pathlib import Path

from isthmus.mcp_host.config.entry_reader import Entry
from isthmus.record import record

ALGORITHMS = ("ES256", "ES384", "ES512", "EdDSA", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512")
"""Supported algorithms for signing a client's assertion."""


class GrantType(StrEnum):
    """The OAuth grant that is used to get a token."""

    AUTHORIZATION_CODE = "authorization_code"
    """A user logs in with a browser."""
    CLIENT_CREDENTIALS = "client_credentials"
    """The client logs in on its own behalf, with its secret or its key."""
    ID_JAG = "id_jag"
    """A user's ID token is exchanged at the company's identity provider (cross-app access, SEP-990)."""


@record
class SecretText:
    """A secret in the settings (``value``) or in a ``file``."""

    value: str | None = field(default=None, repr=False)
    file: Path | None = None


@record
class IdentitySettings:
    """``oauth.identity``: the identity provider of the ID token. A missing address is discovered."""

    id_token: SecretText
    client_id: str
    issuer: str | None = None
    token_url: str | None = None
    client_secret: str | None = field(default=None, repr=False)


@record
class OAuthSettings:
    """The settings ``oauth`` of a server. Missing addresses, scopes and client ids are discovered or registered.

    ``client_metadata_url`` is the address of a client metadata document: the client id at servers that support it.
    ``private_key`` (PEM) replaces a secret: it signs the client's assertion with ``signing_algorithm``.
    """

    enabled: bool = False
    client_id: str | None = None
    client_secret: str | None = None
    authorization_url: str | None = None
    token_url: str | None = None
    scopes: tuple[str, ...] = ()
    redirect_uri: str | None = None
    token_param_name: str | None = None
    audiences: tuple[str, ...] = ()
    client_metadata_url: str | None = None
    grant_type: GrantType = GrantType.AUTHORIZATION_CODE
    private_key: SecretText | None = None
    signing_algorithm: str = "ES256"
    identity: IdentitySettings | None = None

    @property
    def is_of_machine(self) -> bool:
        """Whether the login works without a user."""
        return self.grant_type is not GrantType.AUTHORIZATION_CODE


def decode_oauth(entry: Entry, *, is_own: bool) -> OAuthSettings:
    """Return the settings ``oauth`` of a server's entry. `is_own`: the entry is in the user's own settings file.

    Raises:
        ServerConfigError: a property is invalid, or a property that the grant type requires is missing.
    """
    inner = entry.inner("oauth")
    if inner is None:
        return OAuthSettings()
    grant = inner.string("grantType") or GrantType.AUTHORIZATION_CODE
    if grant not in tuple(GrantType):
        raise inner.error("grantType", f"one of {', '.join(GrantType)}", grant)
    algorithm = inner.string("signingAlgorithm") or "ES256"
    if algorithm not in ALGORITHMS:
        raise inner.error("signingAlgorithm", f"one of {', '.join(ALGORITHMS)}", algorithm)
    oauth = OAuthSettings(
        enabled=inner.boolean("enabled"),
        client_id=inner.optional("clientId"),
        client_secret=inner.optional("clientSecret"),
        authorization_url=inner.optional("authorizationUrl"),
        token_url=inner.optional("tokenUrl"),
        scopes=inner.all_expanded("scopes"),
        redirect_uri=inner.optional("redirectUri"),
        token_param_name=inner.optional("tokenParamName"),
        audiences=inner.all_expanded("audiences"),
        client_metadata_url=inner.optional("clientMetadataUrl"),
        grant_type=GrantType(grant),
        private_key=_secret(inner, "privateKey", is_own=is_own),
        signing_algorithm=algorithm,
        identity=_identity(inner, is_own=is_own),
    )
    if oauth.is_of_machine and oauth.client_id is None:
        raise inner.error("clientId", f"the id of a registered client, since grantType is {grant}", None)
    if oauth.grant_type is GrantType.CLIENT_CREDENTIALS and not (oauth.client_secret or oauth.private_key):
        raise inner.error("clientSecret", f"a secret, or privateKeyFile, since grantType is {grant}", None)
    if oauth.grant_type is GrantType.ID_JAG and oauth.identity is None:
        raise inner.error("identity", f"the identity provider, since grantType is {grant}", None)
    entry.warnings += inner.misspellings("oauth.")
    return oauth


def _identity(inner: Entry, *, is_own: bool) -> IdentitySettings | None:
    identity = inner.inner("identity")
    if identity is None:
        return None
    token = _secret(identity, "idToken", is_own=is_own)
    if token is None:
        raise identity.error("idToken", "the ID token of the user, or idTokenFile", None)
    issuer, token_url = identity.optional("issuer"), identity.optional("tokenUrl")
    if issuer is None and token_url is None:
        raise identity.error("issuer", "the address of the identity provider, or tokenUrl", None)
    return IdentitySettings(
        token, identity.required("clientId"), issuer, token_url, client_secret=identity.optional("clientSecret")
    )


def _secret(entry: Entry, key: str, *, is_own: bool) -> SecretText | None:
    """Return the secret in the property `key`, or the file in the property `key` with the suffix ``File``."""
    value, file = entry.optional(key), entry.optional(f"{key}File")
    if file is not None and not is_own:
        raise entry.error(f"{key}File", "no file: only your own settings file may name one", file)
    if value is None and file is None:
        return None
    return SecretText(value, None if file is None else Path(file).expanduser())
