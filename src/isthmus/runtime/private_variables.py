"""Environment variables that no program of an agent gets: they let it in where only the user, or Isthmus itself, is."""

OWN_TOKENS = frozenset(("GEMINI_CLI_IDE_AUTH_TOKEN", "ISTHMUS_A2A_TOKEN", "ISTHMUS_JOURNAL"))
"""Variables that let programs in at the companion, a server, or the database that holds all conversations."""
EDITOR_ADDRESSES = frozenset(
    (
        *("NVIM", "NVIM_LISTEN_ADDRESS", "VIM_SERVERNAME", "EMACS_SERVER_FILE", "EMACS_SOCKET_NAME"),
        *("VSCODE_IPC_HOOK", "VSCODE_IPC_HOOK_CLI"),
    )
)
"""Variables with which a program finds the user's editor and takes the place of its user: by keys, or by code."""
