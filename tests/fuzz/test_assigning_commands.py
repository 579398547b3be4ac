"""Commands of bash that assign to a variable: none of them is understood, so each is asked about.

bash is the judge: each line changes X.
"""

import subprocess

import pytest

from isthmus.agent.approval.shell_command import analyse
from support.programs import require

BASH = require("bash")
ASSIGNING = (
    "X=1",
    "X+=1",
    "X=1 Y=2",
    "declare X=1",
    "declare -n Y=X; Y=1",
    "typeset X=1",
    "export X=1",
    "readonly X=1",
    "local_() { local X=1; echo $X; }; X=$(local_)",
    "read X <<< 1",
    "read -r Y X <<< '0 1'",
    "mapfile X <<< 1",
    "readarray -t X <<< 1",
    "getopts a X -a",
    "let X=1",
    "let 'X += 1'",
    "((X=1))",
    "((X++))",
    ": $((X=1))",
    ": ${X:=1}; : ${Y:=1}; X=$Y",
    "printf -v X 1",
    "printf -vX 1",
    "printf 1%n X >/dev/null",
    "printf '1%5n' X >/dev/null",
    'printf "1%n" X >/dev/null',
    "printf '%s%n' ab X >/dev/null",
    "true & wait -n -p X",
    "unset X",
    "unset -v X",
    "for X in 1; do :; done",
    "select X in 1; do break; done <<< 1 2>/dev/null",
    "for ((X=1; X<2; X++)); do :; done",
    "eval X=1",
    "source /dev/stdin <<< X=1",
    ". /dev/stdin <<< X=1",
    "exec {X}>/dev/null",
    "true {X}>/dev/null",
    "coproc X { :; }; wait",
    "[[ X=1 -eq 1 ]]",
    "[[ 1 -eq X++ ]]",
    "[[ 'a[X=1]' -eq 0 ]]",
    "test -v 'a[X=1]'",
    "[ -v 'a[X=1]' ]",
    "a=([X=1]=2)",
    "trap X=1 DEBUG; :",
    "shopt -s lastpipe; echo 1 | read X",
    "set -- 1; X=$1",
    "cd /; X=$OLDPWD",
    "history -s x; X=1",
)


@pytest.mark.parametrize("line", ASSIGNING)
def test_a_line_that_assigns_is_not_understood(line: str) -> None:
    script = f'X=before\n{line}\n[ "${{X-unset}}" = before ] && echo same'
    ran = subprocess.run([BASH, "-c", script], capture_output=True, text=True, timeout=20, check=False)
    assert "same" not in ran.stdout, (line, ran.stderr)
    assert analyse(line) is None
