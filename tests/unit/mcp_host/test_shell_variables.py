"""The variables of the shell that servers of the user's own settings get."""

import pytest

from isthmus.mcp_host.config.shell_variables import ShellVariables
from isthmus.mcp_host.transports.stdio import server_environment

GIVEN = {
    "KUBECONFIG": "/k",
    "AWS_PROFILE": "work",
    "DOCKER_HOST": "unix:///run/docker.sock",
    "HTTPS_PROXY": "http://proxy.example:3128",
    "DISPLAY": ":1",
    "LANG": "de_DE.UTF-8",
    "VIRTUAL_ENV": "/v",
    "NODE_EXTRA_CA_CERTS": "/ca.pem",
    "GIT_CONFIG_COUNT": "1",
    "FOO": "bar",
    "URL": "https://example.org/a:b@c",
}
KEPT_BACK = {
    "GITHUB_TOKEN": "x",
    "OPENAI_API_KEY": "x",
    "openai_api_key": "x",
    "SSH_AUTH_SOCK": "/s",
    "DATABASE_URL": "x",
    "MY_DSN": "postgres://user:password@db/x",
    "http_proxy": "http://user:password@proxy",
    "NOTE": "ghp_" + "a" * 36,
    "OTHER": "-----BEGIN OPENSSH PRIVATE KEY-----",
    "NVIM": "/run/nvim.sock",
    "ISTHMUS_JOURNAL": "postgresql://db/x",
    "GEMINI_CLI_IDE_AUTH_TOKEN": "x",
}
FEW = {"HOME": "/h", "PATH": "/usr/bin", "TERM": "xterm"}


def test_all_but_what_looks_like_a_secret_is_given() -> None:
    environment = {**GIVEN, **KEPT_BACK, **FEW}
    assert server_environment(environment, {"OWN": "1"}, ShellVariables()) == {**GIVEN, **FEW, "OWN": "1"}


def test_a_server_of_a_project_gets_a_few_and_its_own() -> None:
    environment = {**GIVEN, **KEPT_BACK, **FEW}
    assert server_environment(environment, {"GITHUB_TOKEN": "own"}, None) == {**FEW, "GITHUB_TOKEN": "own"}


def test_the_settings_allow_and_block_names_but_allow_no_value_that_is_a_secret() -> None:
    own = {"security": {"environmentVariableRedaction": {"allowed": ["ssh_auth_sock", "NOTE", "NVIM"], "blocked": []}}}
    project = {"security": {"environmentVariableRedaction": {"allowed": ["GITHUB_TOKEN"], "blocked": ["display"]}}}
    rule = ShellVariables.of([own], [project])
    expected = {name: value for name, value in GIVEN.items() if name != "DISPLAY"}
    assert rule.given({**GIVEN, **KEPT_BACK}) == {**expected, "SSH_AUTH_SOCK": "/s"}


@pytest.mark.parametrize("value", [{}, {"security": 1}, {"security": {"environmentVariableRedaction": [1]}}])
def test_settings_of_another_form_change_nothing(value: dict[str, object]) -> None:
    assert ShellVariables.of([value]) == ShellVariables()
