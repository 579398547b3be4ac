"""A bounded set of connections that makes room by removing its oldest. No I/O.

There are two limits: for all members, and for one address. If the set as a whole is full, the address with the most
members loses its oldest one, so that one address cannot displace the others.
"""

import ipaddress
from collections import OrderedDict
from functools import lru_cache
from typing import Generic, TypeVar

Member = TypeVar("Member")


class OldestFirst(Generic[Member]):
    """Set of members, each with its address, in the order in which they were added."""

    def __init__(self, maximum: int, maximum_per_address: int) -> None:
        if not 1 <= maximum_per_address <= maximum:
            raise ValueError(f"expected 1 <= {maximum_per_address} (per address) <= {maximum} (in all)")
        self._maximum = maximum
        self._maximum_per_address = maximum_per_address
        self._addresses: dict[Member, str] = {}
        self._by_address: dict[str, OrderedDict[Member, None]] = {}

    def __len__(self) -> int:
        return len(self._addresses)

    def __contains__(self, member: Member) -> bool:
        return member in self._addresses

    def members(self) -> tuple[Member, ...]:
        """Return all members, the oldest first."""
        return tuple(self._addresses)

    def count(self, address: str) -> int:
        """Return the number of members of an address."""
        return len(self._by_address.get(address, ()))

    def is_full(self, address: str) -> bool:
        """Return whether adding a member of this address would remove another one."""
        return len(self._addresses) >= self._maximum or self.count(address) >= self._maximum_per_address

    def add(self, member: Member, address: str) -> Member | None:
        """Add a new member and return the member that was removed for it, or None."""
        if member in self._addresses:
            raise ValueError("expected a new member")
        gone = None
        if self.count(address) >= self._maximum_per_address:
            gone = self._oldest_of(address)
        elif len(self._addresses) >= self._maximum:
            gone = self.oldest()
        if gone is not None:
            self.discard(gone)
        self._addresses[member] = address
        self._by_address.setdefault(address, OrderedDict())[member] = None
        return gone

    def discard(self, member: Member) -> bool:
        """Remove a member; return whether it was in the set."""
        address = self._addresses.pop(member, None)
        if address is None:
            return False
        members = self._by_address[address]
        del members[member]
        if not members:
            del self._by_address[address]
        return True

    def oldest(self) -> Member | None:
        """Return the oldest member of the address with the most members; None if the set is empty."""
        if not self._by_address:
            return None
        return self._oldest_of(max(self._by_address, key=self.count))

    def _oldest_of(self, address: str) -> Member:
        return next(iter(self._by_address[address]))


@lru_cache(maxsize=1024)
def address_key(host: str) -> str:
    """Return the key by which an address is counted: itself for IPv4, its /64 network for IPv6."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, 64), strict=False))
