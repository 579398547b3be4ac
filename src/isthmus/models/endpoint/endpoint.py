"""The address and key of a provider, chosen from a given environment.

Nothing here opens a connection or reads the environment of the process.
"""

from collections.abc import Mapping
from dataclasses import field
from urllib.parse import urlsplit

from isthmus.models.endpoint.providers import PROVIDERS, Provider
from isthmus.models.port.base import ModelError, ModelErrorKind
from isthmus.network import loopback
from isthmus.record import record

NO_KEY = "not-needed"
"""Key sent to a server on this machine if none is set, since the SDKs require one."""

SHORTEST_SECRET = 8
"""Minimum length in characters of a key that is hidden in texts.

A shorter one is a placeholder for a server on this machine, and hiding it would also hide parts of ordinary words.
"""


@record
class ModelEndpoint:
    """An address and its credentials. Its representation as text does not contain the key."""

    provider: Provider
    base_url: str
    key: str = field(repr=False)
    token: str | None = field(default=None, repr=False)
    """A bearer token in the key's place (Anthropic)."""
    is_named: bool = False
    """Whether the user named the address; otherwise it is the provider's or the environment's."""

    @property
    def title(self) -> str:
        """The name of the peer in messages, since another server may imitate the provider."""
        imitates = self.provider.is_imitated and self.base_url != self.provider.base_url
        return "The model server" if imitates else self.provider.title

    @property
    def advice(self) -> str:
        """Advice to the user if the address does not answer as expected."""
        return "Check that it runs" + ("" if self.is_named else f", and {self.provider.base_url_variable}")

    @property
    def is_loopback(self) -> bool:
        """Whether the address is on this machine."""
        return is_loopback(self.base_url)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The key and token, which must never be shown."""
        return tuple(secret for secret in (self.key, self.token) if secret and secret != NO_KEY)


def is_loopback(url: str) -> bool:
    """Return whether a URL's host is this machine by its name or number."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return False
    return loopback.is_loopback(host.rstrip("."))


def configured_by(provider: Provider, environment: Mapping[str, str]) -> str | None:
    """Return the variable that configures the provider; None if no variable does."""
    for variable in provider.secret_variables:
        if environment.get(variable, "").strip():
            return variable
    base_url = environment.get(provider.base_url_variable, "").strip().rstrip("/")
    return provider.base_url_variable if base_url and _needs_no_key(provider, base_url) else None


def short_keys(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return a line, without the key, about each key that is too short to be hidden in messages and logs.

    Keys for servers on this machine are skipped: most of them are placeholders.
    """
    return tuple(
        f"{variable} has {len(key)} {'character' if len(key) == 1 else 'characters'}, and a key below {SHORTEST_SECRET}"
        " is not hidden in error messages and logs, where it would hide other words: check that it was copied whole"
        for provider in PROVIDERS
        if not is_loopback(environment.get(provider.base_url_variable, "").strip())
        for variable in provider.secret_variables
        if 0 < len(key := environment.get(variable, "").strip()) < SHORTEST_SECRET
    )


def endpoint(provider: Provider, environment: Mapping[str, str], base_url: str | None = None) -> ModelEndpoint:
    """Return the provider's endpoint. A ``base_url`` overrides the environment's, and receives none of its keys.

    Raises:
        ModelError: CONFIGURATION - no key for an address that needs one, a key that cannot be sent in an HTTP header,
            or an address that is not http or https.
    """
    address = (base_url or environment.get(provider.base_url_variable, "")).strip().rstrip("/") or provider.base_url
    _check_address(provider, address)
    if base_url:
        return ModelEndpoint(provider, address, NO_KEY, is_named=True)
    key = _first(environment, provider.secrets.keys)
    token = None if key else _first(environment, provider.secrets.tokens)
    if not key and not token and not _needs_no_key(provider, address):
        names = " or ".join(provider.secret_variables)
        raise ModelError(
            ModelErrorKind.CONFIGURATION,
            f"{provider.title} needs a key: set {names}, or choose another model with -m",
        )
    return ModelEndpoint(provider, address, key or ("" if token else NO_KEY), token)


def _needs_no_key(provider: Provider, address: str) -> bool:
    """Return whether no key is needed: for a server on this machine, or one that imitates the provider."""
    return is_loopback(address) or (provider.is_imitated and address != provider.base_url)


def _first(environment: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    for name in names:
        value = environment.get(name, "").strip()
        if value:
            if not (value.isascii() and value.isprintable() and " " not in value):
                raise ModelError(
                    ModelErrorKind.CONFIGURATION,
                    f"{name} contains a character that no key has (a space, a line break or a non-ASCII letter): "
                    "copy the key again",
                )
            return value
    return None


def _check_address(provider: Provider, address: str) -> None:
    try:
        parts = urlsplit(address)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise ModelError(
            ModelErrorKind.CONFIGURATION,
            f"{provider.base_url_variable}: expected an http or https URL, received {address!r}",
        )
