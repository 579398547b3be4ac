"""The lines of a program's output that say why it ended: those with words of errors, without stack frames. Pure."""

import re
from collections.abc import Sequence

_FRAME = re.compile(
    r"""^\s*(?:
        at\s.+[:(].*                       # Node.js, Java
      | File\s".*",\sline\s\d+.*           # Python
      | \.\.\.\s\d+\s(?:more|lines).*
      | \d+:\s+(?:0x[0-9a-f]+\s-\s)?\S.*::.*  # Rust
      | goroutine\s\d+\s\[[^\]]*\]:         # Go
      | (?:node:|file://|/).*:\d+(?::\d+)?\)?
      | node:internal/.*
      | [~^|][~^\s|]*
      | Node\.js\sv\d.*
      | Traceback\s\(most\srecent\scall\slast\):
      | \[cause\]:\s*
      | [{}\]\[),;]+
    )$""",
    re.VERBOSE,
)
_SOURCE = re.compile(r"^\s{4,}\S")
"""A line of source below a frame of Python."""
_ERROR = re.compile(
    r"error|exception|fatal|panic|cannot|can't|could not|couldn't|unable|fail|not found|no such|denied|refused|invalid"
    r"|illegal|required|missing|must |unknown|unsupported|unrecogni[sz]ed|expected|not set|not installed|please "
    r"|expired|unauthorized|forbidden|timed? ?out|already in use",
    re.IGNORECASE,
)
_STATE = re.compile(r"^\s*(?:code|errno|syscall|requireStack|stack|path|url)\b\s*[:=]", re.IGNORECASE)
"""A field of an error as Node.js prints it, which repeats what its first line says."""


def telling_lines(lines: Sequence[str], maximum: int = 5) -> list[str]:
    """Return at most ``maximum`` lines of an output, in their order: the last ones that tell of an error.

    If there are none, the first line and the last ones.
    """
    kept: list[str] = []
    is_below_frame = False
    for line in lines:
        is_source = is_below_frame and _SOURCE.match(line) is not None
        is_below_frame = _FRAME.match(line) is not None
        if line.strip() and not is_below_frame and not is_source and _STATE.match(line) is None:
            kept.append(line)
    kept = kept or [line for line in lines if line.strip()]
    errors = [line for line in kept if _ERROR.search(line) is not None]
    if errors:
        return errors[-maximum:]
    return kept if len(kept) <= maximum else [kept[0], *kept[1 - maximum :]]
