"""Variables in configuration values: ``$NAME``, ``${NAME}`` and ``${NAME:-default}``.

Pure. A default also applies to an empty variable, as in a shell. Not here: the expanded fields and their treatment of
unset variables, see :mod:`isthmus.mcp_host.config.server_config`.
"""

import re
from collections.abc import Mapping
from dataclasses import field

from isthmus.record import record

MODEL_KEYS = frozenset(
    {
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "CODEX_API_KEY",
        "DASHSCOPE_API_KEY",
        "GEMINI_API_KEY",
        "GOOGLE_API_KEY",
        "OPENAI_API_KEY",
        "OPENROUTER_API_KEY",
    }
)
"""Variables with which users pay for models: never inserted into the entry of a project's server."""

_REFERENCE = re.compile(
    r"\$(?:\{(?P<braced>[A-Za-z_]\w*+)(?::-(?P<default>[^}]*+))?\}|(?P<plain>[A-Za-z_]\w*+))", re.ASCII
)
_PLAIN = re.compile(r"\$(?P<plain>[A-Za-z_]\w*+)", re.ASCII)


@record
class Expanded:
    """A text with its variables expanded. Unset variables are replaced by an empty text and listed in ``unset``.

    ``values`` are the expanded variables with their values.
    """

    text: str
    unset: tuple[str, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


def expand(text: str, variables: Mapping[str, str]) -> Expanded:
    """Return `text` with its references replaced. References in inserted values are not expanded."""
    unset: list[str] = []
    values: dict[str, str] = {}

    def value(name: str, default: str | None = None) -> str:
        if variables.get(name):
            return values.setdefault(name, variables[name])
        if default is not None:
            return default
        if name not in variables:
            unset.append(name)
        return ""

    # A reference in braces must end by the last brace. Matching one after it would scan to the end of the text.
    end = text.rfind("}") + 1
    with_braces = _REFERENCE.sub(lambda found: value(found["braced"] or found["plain"], found["default"]), text[:end])
    without = _PLAIN.sub(lambda found: value(found["plain"]), text[end:])
    return Expanded(with_braces + without, tuple(dict.fromkeys(unset)), values)
