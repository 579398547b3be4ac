"""The folders in which commands of a line run, and formats of printf, against a real bash."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.agent.approval.shell_command import analyse
from support.programs import require

BASH = require("bash")
TARGETS = ("a", "b", "a/b", "..", ".", "./a/../b", "none", "/tmp", "-", "~", "$X", "")
_changes = st.sampled_from([*(f"cd {target}" for target in TARGETS), "pushd a", "popd", "cd -P a", "pushd", "cd a b"])
_simple = st.one_of(st.just("where"), _changes, st.just("true"), st.just("false"))


def _combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pair = st.tuples(inner, inner)
    joined = st.tuples(inner, st.sampled_from(["&&", "||", ";", "\n", "|"]), inner)
    return st.one_of(
        joined.map(lambda parts: " ".join(parts)),
        inner.map(lambda line: f"( {line} )"),
        inner.map(lambda line: f"{{ {line}; }}"),
        inner.map(lambda line: f"! {line}"),
        inner.map(lambda line: f"{{ {line}; }} 2>/dev/null"),
        inner.map(lambda line: f"echo $( {line} )"),
        pair.map(lambda two: f"if {two[0]}; then {two[1]}; else where; fi"),
        pair.map(lambda two: f"for i in 1 2; do {two[0]}; {two[1]}; done"),
        pair.map(lambda two: f"case x in y) {two[0]};; x) {two[1]};; esac"),
    )


_lines = st.recursive(_simple, _combined, max_leaves=10).map(lambda line: f"{line}\nwhere")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("place").resolve()
    for name in ("a/b", "b", "home"):
        (folder / name).mkdir(parents=True)
    return folder


@given(line=_lines)
@settings(max_examples=300, deadline=None)
def test_each_command_runs_in_one_of_the_folders_that_were_found(place: Path, line: str) -> None:
    found = analyse(line)
    if found is None:
        return
    possible = [command.folders for command in found.commands if command.words[0] == "where"]
    named = line
    for number in range(len(possible)):
        named = named.replace("where", f"say{number}", 1)
    functions = "".join(f"say{number}() {{ echo {number} $PWD >&9; }};" for number in range(len(possible)))
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(place / "home"), "X": "b"}
    script = f"exec 9>&1; {functions}\n{named}"
    command = [BASH, "-c", script]
    ran = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, timeout=20, check=False)
    for said in ran.stdout.splitlines():
        number, _, folder = said.partition(" ")
        if not number.isdigit() or not folder.startswith("/"):
            continue  # of echo
        folders = possible[int(number)]
        seen = {str((place / each).resolve()) for each in folders if each is not None}
        assert None in folders or str(Path(folder).resolve()) in seen, (line, folder, folders)


_pieces = [
    *(
        "%",
        "n",
        "x",
        "d",
        "5",
        ".",
        "*",
        "-",
        "+",
        " ",
        "#",
        "0",
        "h",
        "l",
        "L",
        "j",
        "z",
        "t",
        "q",
        "(",
        ")",
        "T",
        "b",
    ),
    *("s", "Q", "v", "$", "1", "\\045", "\\x25", "\\", "%%", "%n", "%5n", "%*n", "%.0n", "%ln", "%1$n"),
]
_formats = st.lists(st.sampled_from(_pieces), max_size=8).map("".join)


@given(formats=st.lists(_formats, min_size=50, max_size=200))
@settings(max_examples=20, deadline=None)
def test_a_format_of_printf_that_is_understood_assigns_nothing(formats: list[str]) -> None:
    known = [text for text in formats if analyse(f"printf '{text}' PATH PATH PATH PATH") is not None]
    checks = [
        f"(PATH=kept; printf '{text}' PATH PATH PATH PATH >/dev/null 2>&1; [ \"$PATH\" = kept ] || echo {number})"
        for number, text in enumerate(known)
    ]
    command = [BASH, "-c", "\n".join(checks)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert [known[int(number)] for number in ran.stdout.split()] == []


@pytest.mark.parametrize(
    "text",
    ["%n", "%5n", "%-n", "%*n", "%.3n", "%ln", "%hhn", "x%n", "%%%n", "%s%n", "-v", "-vPATH", "-v PATH", "$X", "a$(b)"],
)
def test_a_format_that_may_assign_is_asked_each_time(text: str) -> None:
    assert analyse(f'printf "{text}" PATH') is None


@pytest.mark.parametrize("text", ["%s\\n", "%d %5.2f%%\\n", "%-20s|%q\\n", "plain", "%b", "%05d", "%x"])
def test_an_ordinary_format_is_understood(text: str) -> None:
    assert analyse(f"printf '{text}' a") is not None
