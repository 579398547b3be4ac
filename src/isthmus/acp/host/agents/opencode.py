"""OpenCode, ``opencode acp``.

Its questions about edits have a diff in 1.18.33. Where they had none, a user could not change an edit before it was made.
"""

from isthmus.acp.host.known_agent import KnownAgent

AGENT = KnownAgent(
    id="opencode",
    title="OpenCode",
    programs=("opencode", "opencode-ai"),
    variables=("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY", "OPENCODE_CONFIG", "OPENROUTER_API_KEY"),
    writes_by_itself=True,
    login="Run `opencode auth login` on the machine of the server.",
)
