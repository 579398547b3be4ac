"""Kinds of addresses: a stranger's URL must not make this machine call its own network. Pure."""

import ipaddress

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_UNICAST = ipaddress.IPv6Network("2000::/3")
"""Network of all public IPv6 addresses; Python reports some others as global, too (``fec0::/10``)."""
_NOT_PUBLIC = (ipaddress.IPv4Network("168.63.129.16/32"),)
"""Addresses that look public, but are services of a cloud for its own machines (Azure)."""


def plain_address(text: str) -> Address:
    """Return the address of a text, without its zone; the IPv4 address that is embedded in an IPv6 one.

    Raises:
        ValueError: it is not an address.
    """
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address in _NAT64 or (int(address) >> 32 == 0 and int(address) > 1):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def kind_unless_public(address: Address) -> str | None:
    """Return the kind of an address that is not public; None for a public one."""
    if address.is_unspecified:
        return "the unspecified address"
    if address.is_loopback:
        return "a loopback address"
    if address.is_link_local:
        return "a link-local address"
    if address.is_multicast:
        return "a multicast address"
    if address.is_private:
        return "a private address"
    is_inner = any(address.version == network.version and address in network for network in _NOT_PUBLIC)
    is_outer = address.version == 6 and address not in _UNICAST
    return "a reserved address" if is_inner or is_outer or address.is_reserved or not address.is_global else None


def public_only(host: str, address: str) -> str | None:
    """Return the kind of an ``address`` that is not public, which ``host`` leads to; None for a public one."""
    return kind_unless_public(plain_address(address))
