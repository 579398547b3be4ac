"""Decodes the settings of the sandbox around commands: ``tools.sandbox``, and Gemini CLI's keys beside it. Pure."""

from collections.abc import Mapping
from dataclasses import field
from typing import cast

from isthmus.errors import DecodeError
from isthmus.record import record
from isthmus.sandbox.policy import SandboxPolicy, decode_paths, decode_policy, widened


@record
class CommandSandbox:
    """Settings of the sandbox around commands.

    ``is_wanted`` is None when the settings do not say. ``policy`` applies when a sandbox is wanted, here or on the
    command line.
    """

    is_wanted: bool | None = None
    policy: SandboxPolicy = field(default_factory=SandboxPolicy)


def decode_command_sandbox(tools: Mapping[str, object], where: str) -> CommandSandbox:
    """Decode `tools`, the key ``tools`` of the settings file that `where` names.

    Raises:
        DecodeError: a value is invalid; the text names its key.
    """
    value = tools.get("sandbox")
    is_wanted = None if value is None else decode_policy(value, f"{where}.sandbox") is not None
    if isinstance(value, Mapping):
        value = {**cast("Mapping[str, object]", value), "enabled": True}
    policy = (decode_policy(value, f"{where}.sandbox") if value else None) or SandboxPolicy()
    has_network = tools.get("sandboxNetworkAccess", False)
    if not isinstance(has_network, bool):
        raise DecodeError(f"{where}.sandboxNetworkAccess", "true or false", has_network)
    paths = decode_paths(tools.get("sandboxAllowedPaths"), f"{where}.sandboxAllowedPaths")
    return CommandSandbox(is_wanted, widened(policy, paths, has_network=has_network))
