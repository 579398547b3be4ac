import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.agent.approval.shell_quoting import UnquotableError, with_text

PLACE = "{{args}}"
ATTACKS = (
    "'; touch made; '",
    '"; touch made; "',
    "$(touch made)",
    "`touch made`",
    "a\ntouch made\n",
    "' \" $HOME \\",
    "*",
    "",
    "-n é 汉",
)
COMMANDS = (
    "printf %s {{args}}",
    'printf %s "{{args}}"',
    "printf %s '{{args}}'",
    "printf %s '\\'{{args}} | tail -c +2",
    'printf %s "$(printf %s {{args}})"',
    'printf %s "$(printf %s "{{args}}")"',
    'x={{args}}; printf %s "$x"',
    'for each in "{{args}}"; do printf %s "$each"; done',
    "case a in a) printf %s {{args}};; esac",
    'if [ a = a ]; then printf %s "{{args}}" | cat; fi',
)


def bash(command: str, folder: Path) -> str:
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, capture_output=True, encoding="utf-8", timeout=100, check=False
    )
    return done.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_a_text_reaches_the_command_whole_whatever_quotes_stand_around_its_place(command: str, tmp_path: Path) -> None:
    for attack in ATTACKS:
        expected = attack.rstrip("\n") if "$(" in command else attack
        assert bash(with_text(command, PLACE, attack), tmp_path) == expected, attack
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "command",
    [
        "cat <<END\n{{args}}\nEND",
        "ls # {{args}}",
        "echo `ls {{args}}`",
        'echo "${x:-{{args}}}"',
        "echo $(( {{args}} ))",
        "(( {{args}} ))",
        "for ((i={{args}}; i<2; i++)); do ls; done",
        "echo $'{{args}}'",
        "echo 'open {{args}}",
        "x[{{args}}]=1",
        "let {{args}}(",
        "echo \\{{args}}",
        'echo "\\{{args}}"',
        "echo ${{args}}",
        'echo "${{args}}"',
    ],
)
def test_a_place_where_nothing_can_be_quoted_is_refused(command: str) -> None:
    with pytest.raises(UnquotableError):
        with_text(command, PLACE, "a")


def test_a_command_without_the_place_is_as_it_was() -> None:
    assert with_text("echo 'open", PLACE, "a") == "echo 'open"


@given(st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=30))
def test_any_text_is_one_argument_in_double_quotes(text: str) -> None:
    shown = with_text('printf %s "a {{args}} b" {{args}}', PLACE, text)
    done = subprocess.run(["bash", "-c", shown], capture_output=True, timeout=100, check=True)
    assert done.stdout == f"a {text} b{text}".encode()
