"""The environment of a terminal in which agent CLIs shall find one companion: the variables of all its servers."""

from collections.abc import Mapping

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def terminal_environment(variables: Mapping[str, str], base: Mapping[str, str]) -> dict[str, str]:
    """``base`` with the ``variables`` of the companion's servers, and loopback excepted from any proxy.

    Some CLIs send even a loopback WebSocket through a proxy that the environment names.
    """
    environment = dict(base) | dict(variables)
    for name in ("NO_PROXY", "no_proxy"):
        listed = [entry.strip() for entry in environment.get(name, "").split(",") if entry.strip()]
        environment[name] = ",".join([*listed, *(host for host in LOOPBACK if host not in listed)])
    return environment
