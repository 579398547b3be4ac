from typing import Any

import pytest

from isthmus.errors import DecodeError
from isthmus.sandbox.confinement import describe_policy
from isthmus.sandbox.policy import CONTAINERS, Demand, OpenPath, SandboxPolicy, decode_policy
from isthmus.sandbox.settings import decode_command_sandbox


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (None, None),
        (False, None),
        (True, SandboxPolicy()),
        ("auto", SandboxPolicy()),
        ("require", SandboxPolicy(Demand.REQUIRE)),
        ({}, SandboxPolicy()),
        ({"enabled": False, "network": True}, None),
        ({"require": True}, SandboxPolicy(Demand.REQUIRE)),
        ({"network": True}, SandboxPolicy(has_network=True)),
        ({"networkAccess": True}, SandboxPolicy(has_network=True)),
        ({"environment": ["A", "B_1"]}, SandboxPolicy(passed=("A", "B_1"))),
        ({"environment": {"A": "x"}}, SandboxPolicy(variables=(("A", "x"),))),
    ],
)  # fmt: skip
def test_what_a_sandbox_may_be_written_as(written: Any, expected: SandboxPolicy | None) -> None:
    assert decode_policy(written, "sandbox") == expected


def test_paths_are_writable_unless_they_say_otherwise() -> None:
    policy = decode_policy({"paths": ["~/a", "b:rw", "/c:ro"], "allowedPaths": ["/d:e"]}, "sandbox")
    assert policy is not None
    assert policy.paths == (
        OpenPath("~/a", is_writable=True),
        OpenPath("b", is_writable=True),
        OpenPath("/c", is_writable=False),
        OpenPath("/d:e", is_writable=True),
    )


@pytest.mark.parametrize("name", CONTAINERS)
def test_gemini_clis_container_programs_turn_it_on_and_are_said_not_to_be_used(name: str) -> None:
    for written in (name, {"command": name, "image": "x"}):
        policy = decode_policy(written, "tools.sandbox")
        assert policy is not None
        assert name in policy.notes[0]
        assert "bubblewrap" in policy.notes[0]


@pytest.mark.parametrize(
    ("written", "where"),
    [
        (3, "sandbox"),
        ("yes", "sandbox"),
        ([], "sandbox"),
        ({"enabled": "no"}, "sandbox.enabled"),
        ({"require": 1}, "sandbox.require"),
        ({"network": "on"}, "sandbox.network"),
        ({"paths": "~/a"}, "sandbox.paths"),
        ({"paths": [""]}, "sandbox.paths[0]"),
        ({"paths": ["/a", ":ro"]}, "sandbox.paths[1]"),
        ({"paths": ["a\0b"]}, "sandbox.paths[0]"),
        ({"environment": "A"}, "sandbox.environment"),
        ({"environment": ["A=b"]}, "sandbox.environment[0]"),
        ({"environment": {"A": 1}}, "sandbox.environment.A"),
        ({"environment": {"a b": "c"}}, "sandbox.environment"),
        ({"command": 1}, "sandbox.command"),
    ],
)  # fmt: skip
def test_what_cannot_be_names_its_key(written: Any, where: str) -> None:
    with pytest.raises(DecodeError) as raised:
        decode_policy(written, "sandbox")
    assert raised.value.path == where


def test_the_settings_of_gemini_cli_count_too() -> None:
    tools = {
        "sandbox": {"enabled": False, "paths": ["/a"]},
        "sandboxAllowedPaths": ["/b"],
        "sandboxNetworkAccess": True,
    }
    found = decode_command_sandbox(tools, "tools")
    assert found.is_wanted is False
    assert [path.path for path in found.policy.paths] == ["/a", "/b"]
    assert found.policy.has_network
    assert decode_command_sandbox({}, "tools").is_wanted is None
    assert decode_command_sandbox({"sandbox": True}, "tools").is_wanted is True
    for wrong in ({"sandboxNetworkAccess": 1}, {"sandboxAllowedPaths": "/a"}, {"sandbox": 3}):
        with pytest.raises(DecodeError, match=r"^tools\.sandbox"):
            decode_command_sandbox(wrong, "tools")


def test_what_it_opens_is_told_in_a_line() -> None:
    assert describe_policy(SandboxPolicy()) == "writes in the workspace; no network"
    policy = decode_policy({"paths": ["~/a", "/b:ro"], "network": True, "environment": {"TOKEN": "secret"}}, "sandbox")
    assert policy is not None
    assert describe_policy(policy) == "writes in the workspace, ~/a; also reads /b; with the network; gets TOKEN"
