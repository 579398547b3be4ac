"""Options and operands that make a program run another program, or write a file that its name does not suggest.

A permission for a prefix, such as `git log`, does not cover them: the user is asked about each command that has one,
and about each command with a word that may become an option when bash expands it. The table is data; tests/unit/agent
checks it against the real programs. Not here: programs whose purpose is to run others, see `shell_command`.
"""

import re
from collections.abc import Sequence
from functools import cache

from isthmus.agent.approval.shell_syntax import Extent, ShellWord
from isthmus.record import record

_GIT_DIFF = "--output --ext-diff --textconv !--text"
_NODE_PACKAGES = (
    "-C -c --script-shell --prefix --userconfig --globalconfig --node-options --shell --editor --viewer --git --call"
)
_PIP = "-t --python --target --prefix --root --log --config-settings --global-option --build-option !--pre"
_COMPILER = "-wrapper -fplugin -specs -B @"

TABLE: dict[str, str] = {
    # git: asked_each_time handles global options.
    "git archive": "-o --output --exec --remote",
    "git bisect run": "*",
    "git blame": _GIT_DIFF,
    "git cat-file": "--textconv --filters",
    "git clone": "-u -c --upload-pack --config --template",
    "git config": "*",
    "git diff": _GIT_DIFF,
    "git diff-index": _GIT_DIFF,
    "git diff-tree": _GIT_DIFF,
    "git difftool": "*",
    "git fetch": "--upload-pack",
    "git filter-branch": "*",
    "git for-each-repo": "*",
    "git format-patch": f"-o --output-directory {_GIT_DIFF}",
    "git grep": "-O --open-files-in-pager --textconv",
    "git help": "-w --web",
    "git hook": "*",
    "git init": "--template",
    "git instaweb": "*",
    "git log": _GIT_DIFF,
    "git ls-remote": "--upload-pack --exec",
    "git mergetool": "*",
    "git pull": "--upload-pack",
    "git push": "--receive-pack --exec",
    "git range-diff": _GIT_DIFF,
    "git rebase": "-x -i --exec --interactive",
    "git send-email": "*",
    "git send-pack": "--receive-pack --exec",
    "git shortlog": _GIT_DIFF,
    "git show": _GIT_DIFF,
    "git stash": _GIT_DIFF,
    "git submodule foreach": "*",
    "git submodule update": "--remote",
    "git web--browse": "*",
    "git whatchanged": _GIT_DIFF,
    # Text and files.
    "ack": "--pager --ackrc --output",
    "ag": "--pager",
    "bat": "--pager",
    "cpio": "-F -O -I --file --rsh-command",
    "curl": "-o -O -K -J -D -c -T --output --remote-name --remote-name-all --remote-header-name --config --output-dir"
    " --dump-header --cookie-jar --upload-file --trace --trace-ascii --stderr --libcurl"
    " --engine --etag-save --hsts --alt-svc",
    "date": "-s --set",
    "dd": "of=",
    "diff3": "--diff-program",
    "fd": "-x -X --exec --exec-batch",
    "file": "-C --compile",
    "fzf": "--preview --bind --listen --become",
    "hostname": "-F -b --file --boot <0",
    "ip": "-b --batch :netns :add :del :delete :set :change :replace :append :flush :exec",
    "journalctl": "--vacuum-size --vacuum-time --vacuum-files --rotate --flush --cursor-file"
    " --setup-keys --update-catalog",
    "less": "-o -O -k -t --log-file --LOG-FILE --lesskey-file --lesskey-src --lesskey-content --tag +",
    "man": "-P -H -C --pager --html --config-file",
    "more": "+",
    "patch": "-o -r -e --output --reject-file --ed",
    "rg": "--pre --hostname-bin",
    "rsync": "-e -M --rsh --rsync-path --log-file --remote-option --daemon --config",
    "sdiff": "-o --output --diff-program",
    "sort": "-o -T --output --temporary-directory --compress-program",
    "split": "--filter",
    "tar": "-I -F -T -g -f* --use-compress-program --info-script --new-volume-script"
    " --checkpoint-action --to-command --rmt-command"
    " --rsh-command --files-from --listed-incremental --index-file --volno-file",
    "tcpdump": "-z -w -F -Z --postrotate-command",
    "tree": "-o",
    "uniq": "<1",
    "wget": "-O -o -a -P -e -i --output-document --output-file --append-output"
    " --directory-prefix --execute --input-file --config"
    " --save-cookies --use-askpass --post-file --body-file --rejected-log --warc-file",
    "xmllint": "-o --output --shell",
    "xsltproc": "-o --output",
    "xxd": "<1",
    "yq": "-i --inplace --in-place",
    "zip": "-T -b --test --unzip-command",
    # Building and testing.
    "bun exec": "*",
    "bun x": "*",
    "deno eval": "*",
    "bun": "-c --config --preload -r --require --cwd",
    "c++": _COMPILER,
    "cargo": "--config --manifest-path -C -Z",
    "cc": _COMPILER,
    "clang": _COMPILER,
    "clang++": _COMPILER,
    "docker compose": "-f --file --project-directory",
    "docker exec": "*",
    "docker run": "*",
    "eslint": "-c -o --config --output-file --rulesdir --resolve-plugins-relative-to --parser",
    "g++": _COMPILER,
    "gcc": _COMPILER,
    "go": "-exec -toolexec -vettool -overlay -modfile -ldflags -gccgoflags -compiler -C -o",
    "jest": "-c --config --rootDir --globalSetup --runner --testRunner --reporters --transform --outputFile",
    "kubectl exec": "*",
    "kubectl run": "*",
    "make": "-f -E -C -I --file --makefile --eval --directory --include-dir =",
    "mypy": "--python-executable --config-file --install-types",
    "npm": _NODE_PACKAGES,
    "npm exec": "*",
    "npm-run-all": "--npm-path",
    "run-p": "--npm-path",
    "run-s": "--npm-path",
    "npm x": "*",
    "pip": _PIP,
    "pip3": _PIP,
    "pnpm": _NODE_PACKAGES,
    "pnpm dlx": "*",
    "pnpm exec": "*",
    "podman exec": "*",
    "podman run": "*",
    "pylint": "--load-plugins --init-hook --rcfile --output",
    "pytest": "-p -c -o --rootdir --confcutdir --override-ini --basetemp --config-file"
    " --junitxml --junit-xml --log-file --debug !--co",
    "tox": "-c --conf --workdir --root -x --override",
    "yarn": f"{_NODE_PACKAGES} --use-yarnrc --cwd",
    "yarn dlx": "*",
    "yarn exec": "*",
}
"""A program, or a program and its subcommand, with the words that need an answer each time.

`-x` is a short option, also in a bundle; `--name` a long option, also abbreviated or with a value; `!--name` an exempt
option that looks like such an abbreviation; `-name` an option of several letters with one hyphen; `NAME=` or `=` an
assignment; `:word` an operand; `<N` more than N operands; `-f*` an option whose value may name another machine; `@` and
`+` a word with that first character; `*` every call.
"""

_VALUED = {"uniq": "fsw", "xxd": "cglnoRs"}
"""Short options whose value is a separate word, for programs whose operands are counted."""
_PLAIN_ASSIGNMENT = re.compile(r"(?!SHELL|MAKE|\.)[A-Za-z_]\w*[:+?]?=(?:\d*|y|n|yes|no|true|false|on|off)")
_GIT_GLOBALS = frozenset({"--no-pager", "-P", "--no-optional-locks", "--version", "--literal-pathspecs", "--help"})
_GIT_CONFIG_READS = frozenset({"--get", "--get-all", "--get-regexp", "--list", "-l", "list", "get"})
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


@record
class _Entry:
    """A parsed row of the table."""

    letters: str
    names: tuple[str, ...]
    exempt: tuple[str, ...]
    bundles: bool
    words: tuple[str, ...]
    starts: tuple[str, ...]
    assignments: bool
    operands: int | None
    remote: bool
    always: bool


@cache
def _entry(key: str) -> _Entry | None:
    row = TABLE.get(key)
    if row is None:
        return None
    items = row.split()
    dashed = [item for item in items if item.startswith("-") and not item.endswith("*")]
    counts = [int(item[1:]) for item in items if item.startswith("<")]
    return _Entry(
        letters="".join(item[1] for item in dashed if len(item) == 2),
        names=tuple(item.lstrip("-") for item in dashed if len(item) > 2),
        exempt=tuple(item[1:] for item in items if item.startswith("!")),
        bundles=not any(len(item) > 2 and item[1] != "-" for item in dashed),
        words=tuple(item[1:] for item in items if item.startswith(":")),
        starts=tuple(item for item in items if item in ("@", "+") or (item.endswith("=") and item != "=")),
        assignments="=" in items,
        operands=counts[0] if counts else None,
        remote="-f*" in items,
        always="*" in items,
    )


def asked_each_time(words: Sequence[ShellWord]) -> str:
    """Return the word for which a command needs an answer despite an allowed prefix, or an empty text."""
    name = words[0].text.rpartition("/")[2]
    arguments = list(words[1:])
    match name:
        case "sed" | "gsed":
            return _asked_word_of_sed(arguments)
        case "awk" | "gawk" | "mawk" | "nawk":
            return _asked_word_of_awk(arguments)
        case "git":
            while arguments and arguments[0].text in _GIT_GLOBALS:
                arguments.pop(0)
            if arguments and (arguments[0].text.startswith("-") or arguments[0].may_be_option):
                return f"git {arguments[0].text}"
        case "hatch" | "pdm" | "pipenv" | "poetry" | "rye" | "uv" if len(words) > 2 and words[1].text == "run":
            return asked_each_time(words[2:])
        case _:
            pass
    keys = [name]
    for word in arguments[:2]:
        keys.append(f"{keys[-1]} {word.text}")
    for depth, key in enumerate(keys):
        entry = _entry(key)
        if entry is not None and (asked := _asked_word(entry, key, arguments[depth:])):
            return f"{key} {asked}".strip()
    return ""


def _asked_word(entry: _Entry, key: str, words: Sequence[ShellWord]) -> str:
    """Return the first word that needs an answer each time."""
    if entry.always:
        is_read = key == "git config" and bool(words) and words[0].text in _GIT_CONFIG_READS
        return "" if is_read else " ".join(word.text for word in words[:1]) or "…"
    operands = 0
    are_options = True
    valued = _VALUED.get(key, "")
    skips_value = False
    for number, word in enumerate(words):
        text = word.text
        if are_options and text == "--" and word.extent is Extent.EXACT and key != "tar":
            are_options = False
            continue
        if are_options and word.may_be_option:
            return f"{text} (which may become an option)"
        if are_options and _needs_answer_for_option(entry, text):
            return text
        if _needs_answer_for_word(entry, word) or (
            entry.remote and number == 0 and _needs_answer_for_option(entry, f"-{text}")
        ):
            return text
        is_option = are_options and text.startswith("-") and text != "-"
        if word.extent is Extent.ANY:
            operands += 2  # Even in an option or its value: all words but the first become operands.
        elif not is_option and not skips_value:
            operands += 1
        skips_value = is_option and len(text) == 2 and text[1] in valued
        if entry.operands is not None and operands > entry.operands:
            return text or "''"
    return ""


def _needs_answer_for_option(entry: _Entry, text: str) -> bool:
    name = text.lstrip("-").partition("=")[0]
    if not text.startswith("-") or not name or text in entry.exempt:
        return False
    if text.startswith("--"):
        return any(asked.startswith(name) for asked in entry.names)
    if entry.bundles:
        return any(letter in name for letter in entry.letters)
    # Options of several letters: a single letter cannot be bundled, but a capital letter may be followed by its value.
    return any(name == letter or (letter.isupper() and name.startswith(letter)) for letter in entry.letters) or any(
        text[1:].startswith(asked) for asked in entry.names
    )


def _needs_answer_for_word(entry: _Entry, word: ShellWord) -> bool:
    text = word.text
    if entry.assignments and "=" in text and not text.startswith("-"):
        return not (word.extent is Extent.EXACT and _PLAIN_ASSIGNMENT.fullmatch(text))
    if entry.remote and ":" in text:
        return True
    return text in entry.words or any(text.startswith(start) for start in entry.starts)


def _asked_word_of_sed(words: Sequence[ShellWord]) -> str:
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


def _asked_word_of_awk(words: Sequence[ShellWord]) -> str:
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
