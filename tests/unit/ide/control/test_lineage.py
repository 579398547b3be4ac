"""Attached agents by process: only processes with a connection to one of the companion's ports."""

import os
import socket
from collections.abc import Generator
from contextlib import contextmanager

from isthmus.ide.control.lineage import attached_agent_above, process_of_connection


@contextmanager
def _connected() -> Generator[int]:
    """Connect this process to a port of the loopback interface, and yield the port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        with socket.create_connection(listener.getsockname()):
            yield listener.getsockname()[1]


def test_who_is_connected_to_our_port_is_an_agent() -> None:
    with _connected() as port:
        assert f"(process {os.getpid()})" in str(attached_agent_above(os.getpid(), {port}))
        assert attached_agent_above(os.getpid(), {port + 1}) is None


def test_a_port_of_the_same_number_elsewhere_is_not_ours() -> None:
    with _connected() as port:
        assert attached_agent_above(os.getpid(), {port}, address="192.0.2.1") is None


def test_the_process_at_the_other_end_of_a_connection_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", server)) as connection:
            client = connection.getsockname()[1]
            assert process_of_connection(client, server) == os.getpid()
        assert process_of_connection(client, 1) is None


def test_an_agent_that_is_the_process_itself_is_not_above_it() -> None:
    assert attached_agent_above(os.getpid(), (), {os.getpid()}) is not None
    assert attached_agent_above(os.getpid(), (), {os.getpid()}, itself=False) is None
    assert attached_agent_above(os.getpid(), (), {os.getppid()}, itself=False) is not None
