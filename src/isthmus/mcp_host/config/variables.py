"""Variables in configuration values: ``$NAME``, ``${NAME}`` and ``${NAME:-default}``.

Pure. A default also counts where the variable is set and empty, as in a shell. Deliberately not here: which fields
are expanded and what an unset variable means for each (:mod:`isthmus.mcp_host.config.server_config`).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_REFERENCE = re.compile(
    r"\$(?:\{(?P<braced>[A-Za-z_]\w*+)(?::-(?P<default>[^}]*+))?\}|(?P<plain>[A-Za-z_]\w*+))", re.ASCII
)
_PLAIN = re.compile(r"\$(?P<plain>[A-Za-z_]\w*+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Expanded:
    """A text with its variables filled in; those that are unset stand as an empty text and are named in ``unset``.

    ``values`` are the variables that were filled in, with what they hold.
    """

    text: str
    unset: tuple[str, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


def expand(text: str, variables: Mapping[str, str]) -> Expanded:
    """`text` with its references replaced. What comes in by a value is not expanded again."""
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

    # No reference in braces ends behind the last brace; each that begins there would be read up to the text's end.
    end = text.rfind("}") + 1
    with_braces = _REFERENCE.sub(lambda found: value(found["braced"] or found["plain"], found["default"]), text[:end])
    without = _PLAIN.sub(lambda found: value(found["plain"]), text[end:])
    return Expanded(with_braces + without, tuple(dict.fromkeys(unset)), values)
