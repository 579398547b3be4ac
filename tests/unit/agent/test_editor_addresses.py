"""The addresses of the user's editor, which no command of an agent gets."""

import pytest

from isthmus.agent.options import environment_for_commands


@pytest.mark.parametrize(
    "name",
    [
        "NVIM", "NVIM_LISTEN_ADDRESS", "VIM_SERVERNAME", "EMACS_SERVER_FILE", "EMACS_SOCKET_NAME", "VSCODE_IPC_HOOK",
        "VSCODE_IPC_HOOK_CLI",
    ],
)  # fmt: skip
def test_commands_do_not_learn_the_address_of_the_users_editor(name: str) -> None:
    environment = environment_for_commands({name: "/run/editor", "EDITOR": "nvim", "INSIDE_EMACS": "29.4"}, frozenset())
    assert environment == {"EDITOR": "nvim", "INSIDE_EMACS": "29.4", "ISTHMUS_AGENT": "1"}
