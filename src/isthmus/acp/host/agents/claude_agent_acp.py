"""Claude Agent, ``claude-agent-acp``: Claude Code behind an adapter."""

from isthmus.acp.host.known_agent import KnownAgent

AGENT = KnownAgent(
    id="claude-acp",
    title="Claude Agent",
    programs=(
        *("claude-agent-acp", "@agentclientprotocol/claude-agent-acp", "@zed-industries/claude-agent-acp"),
        *("claude-code-acp", "@zed-industries/claude-code-acp"),
    ),
    variables=(
        *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL", "CLAUDE_CONFIG_DIR"),
        *("CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "IS_SANDBOX"),
    ),
    writes_by_itself=True,
    tool_name_key=("claudeCode", "toolName"),
    login="Run `claude` on the machine of the server and log in there (/login).",
)
