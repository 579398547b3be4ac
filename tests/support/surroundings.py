"""What a test sees of the machine it runs on: folders of its own, and an environment without anybody's keys or editors.

Only the facts; the autouse fixture of tests/conftest.py puts them in place.
"""

from dataclasses import dataclass
from pathlib import Path

FOREIGN_PREFIXES = (
    "A2A_",
    "ANTHROPIC_",
    "CLAUDE",
    "CLICOLOR",
    "GEMINI_",
    "GIT_",
    "GOOGLE_",
    "ISTHMUS_",
    "MCP_",
    "NVIM",
    "OLLAMA_",
    "OPENAI_",
    "OPENROUTER_",
    "OTEL_",
    "QWEN_",
    "VSCODE_",
    "XDG_",
)
"""Variables that change what Isthmus or a real client does; no test inherits them."""

FOREIGN_NAMES = frozenset(
    {
        "ALL_PROXY",
        # Real CLIs draw no interface when they see it; support.programs has read it before.
        "CI",
        "COLORTERM",
        "CONTINUOUS_INTEGRATION",
        "COLUMNS",
        "EDITOR",
        "ENABLE_IDE_INTEGRATION",
        "FORCE_COLOR",
        "FTP_PROXY",
        "GITHUB_ACTIONS",
        "HTTPS_PROXY",
        "HTTP_PROXY",
        "LANGUAGE",
        "LC_MESSAGES",
        "LINES",
        "NO_COLOR",
        "NO_PROXY",
        "PAGER",
        "TERM_PROGRAM",
        "TERM_PROGRAM_VERSION",
        "TMUX",
        "VIMRUNTIME",
        "VISUAL",
        # Seen by this process at its start already; programs that tests start behave as on a user's machine.
        "PYTHONWARNDEFAULTENCODING",
    }
)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The folders that stand for the machine during one test. Their paths are short: a Unix socket's has 108 bytes."""

    home: Path
    temporary: Path
    runtime: Path
