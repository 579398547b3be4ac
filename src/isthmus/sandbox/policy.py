"""Sandbox policies: what a sandbox opens besides the workspace, decoded from settings. Pure.

:mod:`isthmus.sandbox.mounts` decides what a sandbox closes.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from typing import TypeAlias, cast

from isthmus.errors import DecodeError, IsthmusError
from isthmus.record import record


class SandboxError(IsthmusError):
    """Failure to confine a program as required; the text contains the reason and advice."""


class Demand(Enum):
    """Behaviour if the sandbox does not work."""

    AUTO = "auto"
    """Run the program without a sandbox, and report that."""
    REQUIRE = "require"
    """Run nothing."""


@record
class OpenPath:
    """A path to open: absolute, starting with ``~``, or relative to the workspace."""

    path: str
    is_writable: bool


@record
class SandboxPolicy:
    """Permissions of a confined program besides reading the system and changing its workspace.

    ``passed`` are names of variables that are passed on from the surrounding environment, ``variables`` those with a
    value of their own. ``notes`` are messages for the user.
    """

    demand: Demand = Demand.AUTO
    paths: tuple[OpenPath, ...] = ()
    has_network: bool = False
    passed: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


WithSandbox: TypeAlias = SandboxPolicy | None
"""Policy of the sandbox to use; None when no sandbox is wanted."""

CONTAINERS = ("docker", "podman", "sandbox-exec", "runsc", "lxc", "windows-native")
"""Names of Gemini CLI's sandboxes, which Isthmus does not use."""
_EXPECTED = 'true, false, "auto", "require" or an object {paths, network, environment, require}'
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SUFFIXES = {":ro": False, ":rw": True}


def decode_policy(value: object, where: str) -> WithSandbox:
    """Return the policy for `value`; `where` names it in errors, such as ``tools.sandbox``.

    Also accepts the values of Gemini CLI's ``tools.sandbox``: the name of a container program, and an object with
    ``enabled``, ``command``, ``image``, ``allowedPaths`` and ``networkAccess``.

    Raises:
        DecodeError: the value is invalid; the text names the key, the expected values and the received one.
    """
    match value:
        case None | False:
            return None
        case True | Demand.AUTO.value:
            return SandboxPolicy()
        case Demand.REQUIRE.value:
            return SandboxPolicy(Demand.REQUIRE)
        case str() if value in CONTAINERS:
            return SandboxPolicy(notes=(_not_ours(where, value),))
        case Mapping():
            return _decode_object(cast("Mapping[str, object]", value), where)
        case _:
            raise DecodeError(where, _EXPECTED, value)


def widened(policy: SandboxPolicy, paths: tuple[OpenPath, ...], *, has_network: bool) -> SandboxPolicy:
    """Return the policy with more paths, and with the network if `has_network`."""
    return replace(policy, paths=(*policy.paths, *paths), has_network=policy.has_network or has_network)


def decode_paths(value: object, where: str) -> tuple[OpenPath, ...]:
    """Return the paths of a list of ``PATH``, ``PATH:rw`` (the same) and ``PATH:ro``.

    Raises:
        DecodeError: the value is not a list of paths.
    """
    return tuple(_decode_path(item, f"{where}[{index}]") for index, item in enumerate(_list(value, where)))


def _decode_object(value: Mapping[str, object], where: str) -> WithSandbox:
    if not _boolean(value, "enabled", where, default=True):
        return None
    command = value.get("command")
    if command is not None and not isinstance(command, str):
        raise DecodeError(f"{where}.command", "a string", command)
    passed, variables = _decode_environment(value.get("environment"), f"{where}.environment")
    is_required = _boolean(value, "require", where, default=False)
    return SandboxPolicy(
        demand=Demand.REQUIRE if is_required else Demand.AUTO,
        paths=tuple(
            path for key in ("paths", "allowedPaths") for path in decode_paths(value.get(key), f"{where}.{key}")
        ),
        has_network=any(_boolean(value, key, where, default=False) for key in ("network", "networkAccess")),
        passed=passed,
        variables=variables,
        notes=() if command is None else (_not_ours(f"{where}.command", command),),
    )


def _not_ours(where: str, name: str) -> str:
    return f"{where} is {name!r}, which Isthmus does not use: its sandbox is bubblewrap"


def _decode_path(value: object, where: str) -> OpenPath:
    if not isinstance(value, str) or "\0" in value or not value.removesuffix(":ro").removesuffix(":rw").strip():
        raise DecodeError(where, "a path, or PATH:ro", value)
    path, suffix = (value[:-3], value[-3:]) if value[-3:] in _SUFFIXES else (value, ":rw")
    return OpenPath(path, _SUFFIXES[suffix])


def _decode_environment(value: object, where: str) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Return a list of names, or an object of names and values."""
    if isinstance(value, Mapping):
        variables: dict[str, str] = {}
        for name, item in cast("Mapping[str, object]", value).items():
            if not isinstance(item, str) or "\0" in item:
                raise DecodeError(f"{where}.{name}", "a string", item)
            variables[_name(name, where)] = item
        return (), tuple(variables.items())
    names = tuple(_name(item, f"{where}[{index}]") for index, item in enumerate(_list(value, where)))
    return names, ()


def _name(value: object, where: str) -> str:
    if not isinstance(value, str) or _NAME.fullmatch(value) is None:
        raise DecodeError(where, "the name of a variable", value)
    return value


def _list(value: object, where: str) -> list[object]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise DecodeError(where, "a list", value)
    return cast("list[object]", value)


def _boolean(value: Mapping[str, object], key: str, where: str, *, default: bool) -> bool:
    found = value.get(key)
    if found is None:
        return default
    if not isinstance(found, bool):
        raise DecodeError(f"{where}.{key}", "true or false", found)
    return found
