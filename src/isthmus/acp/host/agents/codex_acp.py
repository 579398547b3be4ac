"""Codex, ``codex-acp``: Codex CLI behind an adapter. Seen: 2.6.0 with Codex 0.166, and its predecessor in Rust, 0.16.0.

It begins in its mode "agent", in which it changes files of the workspace without a question, and its model decides
about commands; INITIAL_AGENT_MODE changes that. It sends a command's output in the ``_meta`` of a call. A
refused call ends its turn.
"""

from isthmus.acp.host.known_agent import KnownAgent

AGENT = KnownAgent(
    id="codex-acp",
    title="Codex",
    tested="2.6.0",
    programs=("codex-acp", "@zed-industries/codex-acp", "@agentclientprotocol/codex-acp"),
    variables=(
        *("CODEX_API_KEY", "CODEX_CONFIG", "CODEX_HOME", "CODEX_PATH", "INITIAL_AGENT_MODE", "MODEL_PROVIDER"),
        *("NO_BROWSER", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
    ),
    writes_by_itself=True,
    takes_folders=True,
    unasked=(
        'Unless INITIAL_AGENT_MODE says otherwise, Codex starts in its mode "agent": it changes files of the workspace'
        " without asking, and its model decides which commands you are asked about. To be asked before each change,"
        " start with INITIAL_AGENT_MODE=read-only in the environment."
    ),
    login="Run `codex login` on the machine of the server.",
)
