"""Gemini CLI, ``gemini --acp``. Seen: 0.61.0.

It reads a file before it writes it. An error of the client for a file that does not exist ends that: its library
rejects with the error's JSON object, and its check whether the file is missing knows only exceptions, whatever the
code and the text are. So it could create no file if reading were offered. For the same reason a refused write fails
with "[object Object]".
"""

import re

from isthmus.acp.host.known_agent import KnownAgent

AGENT = KnownAgent(
    id="gemini",
    title="Gemini CLI",
    tested="0.61.0",
    programs=("gemini", "gemini.js", "@google/gemini-cli"),
    variables=(
        *("GEMINI_API_KEY", "GEMINI_MODEL", "GEMINI_CLI_HOME", "GEMINI_CLI_NO_RELAUNCH", "GEMINI_CLI_TRUST_WORKSPACE"),
        *("GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_LOCATION", "GOOGLE_CLOUD_PROJECT"),
        *("GOOGLE_GEMINI_BASE_URL", "GOOGLE_GENAI_USE_GCA", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_VERTEX_BASE_URL"),
    ),
    reads_by_itself=True,
    noise=re.compile(r"\s*\[MODE_UPDATE\] \w+\s*"),
    tool_name=re.compile(r"(?P<name>[a-z][a-z0-9_]*?)(?:__|-\d)"),
    mcp_title=re.compile(r"(?P<tool>\S+) \((?P<server>.+) MCP Server\)"),
    title_is_command=True,
    login="Run `gemini` on the machine of the server and log in there (/auth), or set GEMINI_API_KEY for the server.",
)
