import asyncio
import socket

import pytest

from support.network import is_here, may_reach


@pytest.mark.parametrize("host", [None, "", "localhost", "LOCALHOST.", "a.localhost", "127.0.0.1", "::1", b"localhost"])
def test_this_machine_is_resolved(host: object) -> None:
    assert is_here(host)


@pytest.mark.parametrize("host", ["example.com", "localhost.example.com", b"example.com", "host"])
def test_other_names_are_foreign(host: object) -> None:
    assert not is_here(host)


@pytest.mark.parametrize("address", [("127.9.9.9", 1), ("::1", 1, 0, 0), "/tmp/socket", b"\0abstract", ("", 1)])
def test_addresses_of_this_machine_are_reached(address: object) -> None:
    assert may_reach(address)


@pytest.mark.parametrize("address", [("192.0.2.1", 1), ("2001:db8::1", 1, 0, 0), ("example.com", 80)])
def test_other_addresses_are_not_reached(address: object) -> None:
    assert not may_reach(address)


def test_a_foreign_name_is_an_error_in_every_test() -> None:
    with pytest.raises(socket.gaierror, match="tests resolve no name but localhost"):
        socket.getaddrinfo("isthmus.example", 80)


def test_a_foreign_address_is_an_error_in_every_test() -> None:
    with socket.socket() as connection, pytest.raises(OSError, match="tests reach no machine but this one"):
        connection.connect(("192.0.2.1", 9))


@pytest.mark.anyio
async def test_an_event_loop_does_not_resolve_a_foreign_name_either() -> None:
    with pytest.raises(socket.gaierror):
        await asyncio.get_running_loop().getaddrinfo("isthmus.example", 80)
