"""OpenCode, ``opencode acp``. Seen: 1.18.33.

Its questions about edits have a diff. Without one a user could not change an edit before it is made.
"""

from isthmus.acp.host.known_agent import KnownAgent

AGENT = KnownAgent(
    id="opencode",
    title="OpenCode",
    programs=("opencode", "opencode-ai"),
    variables=("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY", "OPENCODE_CONFIG", "OPENROUTER_API_KEY"),
    writes_by_itself=True,
    unasked=(
        "Unless its settings say otherwise, OpenCode changes files and runs commands without asking. To be asked before"
        ' each, write {"permission": {"edit": "ask", "bash": "ask"}} into ~/.config/opencode/opencode.json.'
    ),
    login="Run `opencode auth login` on the machine of the server.",
)
