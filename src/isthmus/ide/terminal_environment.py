"""The environment of a terminal in which agent CLIs find one companion: the variables of all its servers."""

from collections.abc import Mapping

from isthmus.network.loopback import LOOPBACK_NAMES


def terminal_environment(variables: Mapping[str, str], base: Mapping[str, str]) -> dict[str, str]:
    """Return ``base`` with the ``variables`` of the companion's servers, and loopback excepted from any proxy.

    Some CLIs send even a loopback WebSocket through a proxy that the environment names.
    """
    environment = dict(base) | dict(variables)
    for name, other in (("NO_PROXY", "no_proxy"), ("no_proxy", "NO_PROXY")):
        # Programs read one of the two, so each gets what the other one holds.
        value = base.get(name) or base.get(other) or ""
        listed = [entry.strip() for entry in value.split(",") if entry.strip()]
        if listed != ["*"]:  # "*" disables proxies, but only if it stands alone
            listed += [host for host in LOOPBACK_NAMES if host not in listed]
        environment[name] = ",".join(listed)
    return environment
