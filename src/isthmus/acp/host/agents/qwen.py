"""Qwen Code, ``qwen --acp``. Seen: 0.24.4.

It begins in its mode "auto" unless ``tools.approvalMode`` is set. For files outside of the workspace, such as its own
skills, it reads by itself what the client refuses with the ``errorKind`` that it knows.
"""

import re

from isthmus.acp.host.known_agent import KnownAgent

AGENT = KnownAgent(
    id="qwen-code",
    title="Qwen Code",
    tested="0.24.4",
    programs=("qwen", "@qwen-code/qwen-code"),
    variables=(
        *("DASHSCOPE_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "QWEN_CODE_NO_RELAUNCH"),
        *("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "GEMINI_API_KEY", "GOOGLE_API_KEY"),
    ),
    unasked=(
        'Unless its settings say otherwise, Qwen Code starts in its mode "auto": it changes files of the workspace'
        " without asking, and its model decides which commands you are asked about. To be asked before each, write"
        ' {"tools": {"approvalMode": "default"}} into ~/.qwen/settings.json.'
    ),
    tool_name_key=("toolName",),
    mcp_title=re.compile(r"(?P<tool>\S+) \((?P<server>.+) MCP Server\).*", re.DOTALL),
    login="Run `qwen` on the machine of the server and log in there (/auth), or set OPENAI_API_KEY for the server.",
)
