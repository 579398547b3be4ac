"""Claude Agent, ``claude-agent-acp``: Claude Code behind an adapter. Seen: 0.101.0 with Claude Agent SDK 0.3.318.

It begins in its mode "auto", in which its model decides what is asked; ``permissions.defaultMode`` in Claude Code's
settings changes that. Its diffs have the replaced passage alone. It refuses to start as root unless IS_SANDBOX is set.
"""

from isthmus.acp.host.known_agent import KnownAgent

AGENT = KnownAgent(
    id="claude-acp",
    title="Claude Agent",
    tested="0.101.0",
    programs=(
        *("claude-agent-acp", "@agentclientprotocol/claude-agent-acp", "@zed-industries/claude-agent-acp"),
        *("claude-code-acp", "@zed-industries/claude-code-acp"),
    ),
    variables=(
        *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL", "CLAUDE_CONFIG_DIR"),
        *("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "CLAUDE_CODE_EXECUTABLE", "CLAUDE_CODE_OAUTH_TOKEN"),
        *("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "IS_SANDBOX"),
    ),
    writes_by_itself=True,
    takes_folders=True,
    unasked=(
        'Unless its settings say otherwise, Claude Agent starts in its mode "auto": its model decides what you are'
        ' asked. To be asked before each change and command, write {"permissions": {"defaultMode": "default"}} into'
        " ~/.claude/settings.json."
    ),
    tool_name_key=("claudeCode", "toolName"),
    login="Run `claude` on the machine of the server and log in there (/login).",
)
