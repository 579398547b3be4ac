"""Attached agents by process: only processes with a connection to one of the companion's ports."""

import os
import socket
from collections.abc import Generator
from contextlib import contextmanager

from isthmus.ide.control.lineage import attached_agent_above


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
