"""Variables in configuration values: ``$NAME``, ``${NAME}`` and ``${NAME:-default}``.

Pure. A default also applies to an empty variable, as in a shell. Not here: the expanded fields and their treatment of
unset variables, see :mod:`isthmus.mcp_host.config.server_config`.
"""

import re
from collections.abc import Mapping
from dataclasses import field

from isthmus.record import record
from isthmus.runtime.model_keys import MODEL_KEY_VARIABLES

MODEL_KEYS = frozenset({*MODEL_KEY_VARIABLES, "CODEX_API_KEY", "DASHSCOPE_API_KEY", "OPENROUTER_API_KEY"})
"""Variables with which users pay for models: never inserted into the entry of a project's server."""

_REFERENCE = re.compile(
    r"\$(?:\{(?P<braced>[A-Za-z_]\w*+)(?::-(?P<default>[^}]*+))?\}|(?P<plain>[A-Za-z_]\w*+))", re.ASCII
)
_PLAIN = re.compile(r"\$(?P<plain>[A-Za-z_]\w*+)", re.ASCII)

_FOREIGN = re.compile(
    r"\$\{(?P<kind>\w{1,50}+):(?!-)(?P<name>[^{}]{0,100}+)\}|\{\{ ?(?P<doubled>[A-Za-z_]\w{0,99}+) ?\}\}", re.ASCII
)
_HOME = re.compile(r"(?:^|=)~(?:/|$)")


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


def left_as_it_stands(text: str) -> list[str]:
    """Return a sentence for each reference of other programs in a text, which is not replaced: ``${env:X}``, ``{{X}}``.

    They are quoted without what is around them, which may be a secret.
    """
    found: list[str] = []
    for match in _FOREIGN.finditer(text):
        if match["kind"] == "env":
            advice = f"write ${{{match['name']}}} for the variable"
        else:
            advice = "put its value there, or a variable as ${NAME}"
        found.append(f"{match[0]} is passed as it stands, since it is not a variable here; {advice}")
    return list(dict.fromkeys(found))


def home_as_it_stands(text: str) -> str | None:
    """Return a sentence if a text names the home folder by ``~``, which only shells replace; otherwise None."""
    if _HOME.search(text) is None:
        return None
    return "~ is passed as it stands, since no shell replaces it; write $HOME unless the program reads ~ itself"
