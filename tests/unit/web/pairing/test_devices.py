"""Devices among the tokens of a server's users."""

import pytest

from isthmus.a2a.server.users.auth import Principal, Refusal, RequestGate
from isthmus.a2a.server.users.users import Caps, ExpiredToken, UsersError, UserTable

GATE = RequestGate("the-owners-token")


def test_a_device_acts_for_its_user_within_the_users_limits() -> None:
    table, _, _ = UserTable().added("alice", 0, caps=Caps(max_tasks=3), tier="gold")
    table, entry, token = table.with_device("alice", "Phone", 10, 100)
    assert table.find(token, 50) == entry
    assert (entry.caps, entry.tier, entry.device) == (Caps(max_tasks=3), "gold", "Phone")
    assert isinstance(table.find(token, 100), ExpiredToken)
    assert UserTable.decode(table.encode()) == table


def test_a_device_of_the_owner_is_the_local_user_with_a_token_that_can_be_revoked() -> None:
    table, entry, token = UserTable().with_device("", "Laptop", 0, 100)
    assert GATE.identify(f"Bearer {token}", table, 1) == Principal("", entry.id)
    revoked, gone = table.revoked(entry.id)
    assert gone == (entry,)
    assert isinstance(GATE.identify(f"Bearer {token}", revoked, 1), Refusal)


def test_an_expired_device_is_told_to_pair_again() -> None:
    table, _, token = UserTable().with_device("", "Laptop", 0, 100)
    refused = GATE.identify(f"Bearer {token}", table, 200)
    assert isinstance(refused, Refusal)
    assert "(Laptop)" in refused.message
    assert "pair it again" in refused.message


def test_a_server_without_folders_for_users_lets_in_the_owners_devices_alone() -> None:
    table, _, users = UserTable().added("alice", 0)
    table, _, own = table.with_device("", "Laptop", 0, 100)
    assert table.of_owner().find(users, 1) is None
    assert table.of_owner().find(own, 1) is not None


def test_a_table_of_an_earlier_version_is_read() -> None:
    data = b'{"version": 1, "tokens": [{"id": "0a0a0a0a", "name": "alice", "digest": "d", "created": 1.0}]}'
    (entry,) = UserTable.decode(data).entries.values()
    assert entry.device == ""


def test_a_code_of_a_device_that_was_removed_meanwhile_lets_nobody_in() -> None:
    """The code was made before, and is used after; its device is named by its id, which is an old fact by then."""
    table, first, _ = UserTable().with_device("alice", "Laptop", 0, 100)
    table, second, _ = table.with_device("alice", "Phone", 0, 100, first.id)
    assert second.paired_by == first.id
    removed, gone = table.revoked(first.id)
    assert gone == (first, second)
    with pytest.raises(UsersError, match="was removed; make a new one"):
        removed.with_device("alice", "Tablet", 0, 100, first.id)
