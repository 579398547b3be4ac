"""Rules for the targets of push notifications: a stranger's URL must not make this server call its own network.

A URL must be http or https, without a user; each address of its host must be public, or allowed by the server's owner.
Addresses are checked after resolution, and the caller connects to a checked address (:mod:`isthmus.a2a.push.sender`).
Sans-I/O.
"""

import ipaddress
import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from isthmus.client import InvalidRequest, PushTarget
from isthmus.errors import IsthmusError
from isthmus.network.public_addresses import kind_unless_public, plain_address
from isthmus.record import record

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

URL_CHARACTERS = 2000
"""Maximum length of a URL in characters."""
SECRET_CHARACTERS = 8192
"""Maximum length of a token or of credentials in characters."""
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")
_ID = re.compile(r"[\x21-\x7e]{1,200}")
_HOST_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9_][a-z0-9_-]{0,62}(\.[a-z0-9_-]{1,63})*", re.IGNORECASE)


class PushRefused(InvalidRequest):
    """Refusal of a push target; the text has the reason."""


class PushRuleError(IsthmusError):
    """An entry in the list of allowed targets is not a host name, an address or a network."""


@record
class PushOrigin:
    """Scheme, host and port of a push URL; an IPv6 address in ``host`` has no brackets."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


@record
class PushRule:
    """Targets that are allowed besides public addresses: ``hosts`` by name with any address, and ``networks``."""

    hosts: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()

    @classmethod
    def of(cls, entries: Sequence[str]) -> "PushRule":
        """Return the rule for a list such as ``hooks.internal``, ``10.1.2.3``, ``192.168.0.0/16``.

        Raises:
            PushRuleError: an entry has another form.
        """
        hosts: set[str] = set()
        networks: list[Network] = []
        for entry in entries:
            try:
                networks.append(ipaddress.ip_network(entry.strip().strip("[]"), strict=False))
            except ValueError as error:
                name = entry.strip().lower().rstrip(".")
                if not _HOST_NAME.fullmatch(name) or re.fullmatch(r"[\d.]+", name):
                    raise PushRuleError(
                        f"{entry!r} is not a target for push notifications: expected a host name, an address such as"
                        " 10.1.2.3, or a network such as 192.168.0.0/16"
                    ) from error
                hosts.add(name)
        return cls(frozenset(hosts), tuple(networks))

    def refusal(self, host: str, address: str) -> str | None:
        """Return the kind of a refused ``address``, which ``host`` resolves to; None when it is allowed."""
        if host.lower().rstrip(".") in self.hosts:
            return None
        found = plain_address(address)
        if any(found.version == network.version and found in network for network in self.networks):
            return None
        return kind_unless_public(found)

    def require(self, origin: PushOrigin, addresses: Sequence[str]) -> None:
        """Check that every address of an origin is allowed.

        Raises:
            PushRefused: one is not.
        """
        for address in addresses:
            if (kind := self.refusal(origin.host, address)) is not None:
                # The address is not named: strangers must not learn the addresses in this network.
                raise PushRefused(
                    f"the push notification URL leads to {kind} ({origin.host}); this server sends only to public"
                    " addresses, and to those that its owner allows with --allow-push-to"
                )


def origin_of(target: PushTarget) -> PushOrigin:
    """Return the origin of a target, after checking its URL and secrets as far as possible without the network.

    Raises:
        PushRefused: the URL is not one to send to, or a secret cannot be put into a header.
    """
    _check_secrets(target)
    if target.id and not _ID.fullmatch(target.id):
        raise PushRefused("the id of the push notification config must be 1 to 200 printable ASCII characters")
    url = target.url
    if len(url) > URL_CHARACTERS:
        raise PushRefused(f"the push notification URL is longer than {URL_CHARACTERS} characters")
    if not url.isascii() or re.search(r"[\x00-\x20\x7f\\]", url):
        raise PushRefused("the push notification URL has characters that must be percent-encoded (in names: punycode)")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise PushRefused(f"the push notification URL cannot be read: {error}") from error
    if parts.scheme not in ("http", "https"):
        raise PushRefused("the push notification URL must begin with https:// or http://")
    if not (parts.hostname or "").strip("."):
        raise PushRefused("the push notification URL does not name a host")
    if parts.username is not None or parts.password is not None:
        raise PushRefused("the push notification URL contains a user; put credentials into its authentication")
    if port == 0:
        raise PushRefused("the push notification URL has the port 0; expected 1 to 65535")
    return PushOrigin(
        parts.scheme, (parts.hostname or "").rstrip("."), port or (443 if parts.scheme == "https" else 80)
    )


def _check_secrets(target: PushTarget) -> None:
    if target.scheme is not None and not _TOKEN.fullmatch(target.scheme):
        raise PushRefused("the authentication scheme of the push notification must be one word such as Bearer")
    if target.credentials is not None and target.scheme is None:
        raise PushRefused("the push notification has credentials without an authentication scheme such as Bearer")
    for name, secret in (("token", target.token), ("credentials", target.credentials)):
        if secret and (len(secret) > SECRET_CHARACTERS or not _HEADER_VALUE.fullmatch(secret)):
            raise PushRefused(
                f"the {name} of the push notification cannot be put into a header: expected at most"
                f" {SECRET_CHARACTERS} printable ASCII characters"
            )
