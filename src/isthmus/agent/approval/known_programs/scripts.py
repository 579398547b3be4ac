"""Scripts of sed and awk that neither write a file nor run a program, found by their text alone."""

import re
from collections.abc import Sequence

from isthmus.agent.approval.shell_syntax import Extent, ShellWord

_SED_OPTIONS = re.compile(
    r"-[nErzus]+|--(?:quiet|silent|regexp-extended|null-data|unbuffered|separate|posix|debug|sandbox)|--version|--help"
)
_SED_ADDRESS = r"(?:\d+(?:~\d+)?|\$|/(?:[^/\\\n]|\\[^\n])*/I?)"
_SED_TEXT = r"(?:(?!(?P=d))[^\\\n]|\\[^\n])*(?P=d)"
_SED_COMMAND = re.compile(
    rf"\s*(?:{_SED_ADDRESS}(?:\s*,\s*[+~]?{_SED_ADDRESS})?\s*)?!?\s*"
    rf"(?:[pdqQ=nNgGhHxPDlz{{}}]|s(?P<d>[/|,#:@!%]){_SED_TEXT}{_SED_TEXT}[gpiI\d]*)?\s*"
)
"""One command of sed that neither writes nor runs anything, or nothing. It always matches and never backtracks."""
_AWK_ACTS = re.compile(r"[|>@]|system|getline|close|fflush")
_AWK_OPTIONS = re.compile(r"-F.*|-v.*|--version|--help|--")


def asked_word_of_sed(words: Sequence[ShellWord]) -> str:
    """Return the first word of sed that writes or runs something, or may do so."""
    scripts: list[ShellWord] = []
    are_options = True
    takes_script = False
    for word in words:
        text = word.text
        if takes_script:
            scripts.append(word)
            takes_script = False
        elif are_options and word.may_be_option:
            return f"sed {text} (which may become an option)"
        elif are_options and text == "--":
            are_options = False
        elif are_options and re.fullmatch(r"-[nErzus]*e|--expression", text):
            takes_script = True
        elif are_options and text.startswith("-") and text != "-":
            if not _SED_OPTIONS.fullmatch(text):
                return f"sed {text}"
        elif not scripts:
            scripts.append(word)
    for script in scripts:
        if script.extent is not Extent.EXACT or not _is_plain_script(script.text):
            return f"sed {script.text}"
    return ""


def _is_plain_script(script: str) -> bool:
    """Return whether a script of sed only prints, deletes and replaces. Reads it by command, in linear time."""
    position = 0
    while position < len(script):
        found = _SED_COMMAND.match(script, position)
        position = found.end() if found is not None else position
        if position < len(script):
            is_block = position > 0 and script[position - 1] in "{}"
            if script[position] not in ";\n}" and not is_block:
                return False
            if script[position] in ";\n":
                position += 1
            elif found is None or found.end() == found.start():
                return False
    return True


def asked_word_of_awk(words: Sequence[ShellWord]) -> str:
    """Return the first word of awk that writes or runs something, or may do so."""
    skips_value = False
    for word in words:
        text = word.text
        if skips_value:
            skips_value = False
        elif word.extent is not Extent.EXACT:
            return f"awk {text}"
        elif text in ("-F", "-v"):
            skips_value = True
        elif text.startswith("-"):
            if not _AWK_OPTIONS.fullmatch(text):
                return f"awk {text}"
        else:
            return f"awk {text}" if _AWK_ACTS.search(text) else ""
    return ""
