"""Codex, ``codex-acp``: Codex CLI behind an adapter."""

from isthmus.acp.host.known_agent import KnownAgent

AGENT = KnownAgent(
    id="codex-acp",
    title="Codex",
    programs=("codex-acp", "@zed-industries/codex-acp", "@agentclientprotocol/codex-acp"),
    variables=("CODEX_API_KEY", "CODEX_HOME", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
    writes_by_itself=True,
    login="Run `codex login` on the machine of the server.",
)
