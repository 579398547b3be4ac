import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.agent.approval.shell_command import analyse


def commands_of(text: str) -> list[str]:
    analysis = analyse(text)
    assert analysis is not None, text
    return [" ".join(command.words) for command in analysis.commands]


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("git status", ["git status"]),
        ("ls && rm -rf x || true; date & pwd", ["ls", "rm -rf x", "true", "date", "pwd"]),
        ("cat a | grep b |& wc", ["cat a", "grep b", "wc"]),
        ("ls\nrm x", ["ls", "rm x"]),
        ("ls \\\n  -l", ["ls -l"]),
        ("(cd x; ls)", ["cd x", "ls"]),
        ("{ ls; pwd; }", ["ls", "pwd"]),
        ("! ls", ["ls"]),
        ("echo $(rm x)", ["echo $(rm x)", "rm x"]),
        ('echo "a $(rm x) b"', ['echo "a $(rm x) b"', "rm x"]),
        ("echo `rm x`", ["echo `rm x`", "rm x"]),
        ('git commit -m "it\'s `rm x`"', ['git commit -m "it\'s `rm x`"', "rm x"]),
        ("diff <(ls) >(rm x)", ["diff <(ls) >(rm x)", "ls", "rm x"]),
        ("echo $(echo $(rm x))", ["echo $(echo $(rm x))", "echo $(rm x)", "rm x"]),
        ('echo "$(cat <<EOF\nhi\nEOF\n)"', ['echo "$(cat <<EOF\nhi\nEOF\n)"', "cat"]),
        ("for f in *.py; do wc $f; done", ["wc $f"]),
        ("for f in $(rm x); do ls; done", ["rm x", "ls"]),
        ("while test -f x; do ls; done", ["test -f x", "ls"]),
        ("if ls; then pwd; elif date; then id; else rm x; fi", ["ls", "pwd", "date", "id", "rm x"]),
        ("case $x in a) ls;; *) rm x;; esac", ["ls", "rm x"]),
        ("[[ -f x ]] && ls", ["[[", "ls"]),
        ("[[ -f $(rm x) ]]", ["[[", "rm x"]),
        ("cat <<'EOF'\n$(rm x) `rm y`\nEOF", ["cat"]),
        ("cat <<EOF\nplain\nEOF", ["cat"]),
        ("cat <<< $(rm x)", ["cat", "rm x"]),
        ("echo '$(rm x)'", ["echo $(rm x)"]),
        ('echo "\\`rm x\\`"', ["echo `rm x`"]),
        ("ls # ; rm x", ["ls"]),
        ("g'i't st\"at\"us", ["git status"]),
        ("git statu\\s", ["git status"]),
        ("ls > $(rm x)", ["ls", "rm x"]),
        ("echo > x; rm y", ["echo", "rm y"]),
    ],
)
def test_every_command_inside_is_found(text: str, commands: list[str]) -> None:
    assert commands_of(text) == commands


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  \n",
        "# only a comment \0",
        "a\r\nb",
        "ls '",
        "ls (",
        "ls && ",
        "$(ls)",
        "$cmd x",
        "`ls`",
        "${x} y",
        "$'ls'",
        "g*t status",
        "{git,push}",
        "~/bin/x",
        "x=1",
        "PATH=/evil git status",
        "a=(1 2)",
        "export PATH=/evil",
        "declare x=1",
        "for PATH in /evil; do git status; done",
        "read PATH < f; git status",
        "printf -v PATH x; git status",
        "f() { rm x; }; f",
        "function git { rm x; }",
        "alias ls=rm",
        "unset x",
        "eval 'rm x'",
        "exec rm x",
        "bash -c 'rm x'",
        "/bin/sh -c 'rm x'",
        "env rm x",
        "sudo rm x",
        "xargs rm < f",
        "ls | xargs rm",
        "time -p rm x",
        "nohup rm x",
        "command rm x",
        "builtin eval x",
        "source x.sh",
        ". x.sh",
        "trap 'rm x' EXIT",
        "coproc rm x",
        "ssh host rm x",
        "find . -delete",
        "uv run bash -c x",
        "uv run --with x ls",
        "cross-env A=b rm x",
        "nyc npm test",
        "bash",
        "bash < f",
        "bash <(ls)",
        "cat f | sh /dev/stdin",
        "bash -x tool.sh",
        "bash $x",
        "sh ls",
        "find . -exec rm {} ;",
        'find . "-exec" rm {} +',
        "find . $(echo -delete)",
        "find . $what",
        "((x=1))",
        "echo $((x[$(rm y)]))",
        "echo ${x[$(rm y)]}",
        "echo ${x:-$(rm y)}",
        "echo ${x@P}",
        "cat <<EOF\n$(rm x)\nEOF",
        "cat <<EOF\n`rm x`\nEOF",
        "git 2>/dev/null push --force",
        "ls >f 2>&1 arg",
        "echo `echo \\`rm x\\``",
        "exec 3<>f",
        "cat < /dev/tcp/host/80",
        "cat < /dev/'udp'/host/80",
        "cat < $f",
        "echo \\$(rm x)",
        "echo \ud800",
        "ls;" * 40_000,
    ],
)
def test_what_is_not_certain_is_not_analysed(text: str) -> None:
    assert analyse(text) is None


@pytest.mark.parametrize(
    ("text", "prefixes"),
    [
        ("git status -s", [("git", "status")]),
        ("git stash pop", [("git", "stash", "pop")]),
        ("npm run build -- --watch", [("npm", "run", "build")]),
        ("npm test", [("npm", "test")]),
        ("ls -la | wc -l && ls", [("ls",), ("wc",)]),
        ("./build.sh x", [("./build.sh",)]),
        ("python3 -m pytest", []),
        ("python3 tool.py x", [("python3", "tool.py")]),
        ("git -c core.pager=x log", []),
        ("git", []),
        ("make", []),
        ("make test", [("make", "test")]),
        ("git $x", []),
        ("ls; node -e x", []),
        ("cd sub && ./run.sh", []),
        ("cd sub && /bin/ls", [("cd",), ("/bin/ls",)]),
        ("bash scripts/build.sh -x", [("bash", "scripts/build.sh")]),
        ("for n in {1..3}; do echo $n; done", [("echo",)]),
        ("deno run tool.ts", [("deno", "run", "tool.ts")]),
        ("coverage run tool.py", [("coverage", "run", "tool.py")]),
        ("tox -e docs -- -q", [("tox", "-e", "docs")]),
        ("npm run -s build", [("npm", "run", "-s", "build")]),
        ("uv run pytest -q", [("uv", "run", "pytest")]),
        ("uv run python -c x", []),
        ("uv run python tool.py", [("uv", "run", "python", "tool.py")]),
        ("poetry run git log", [("poetry", "run", "git", "log")]),
        ("/usr/bin/git push", [("/usr/bin/git", "push")]),
    ],
)
def test_prefixes_name_what_can_be_allowed_for_good(text: str, prefixes: list[tuple[str, ...]]) -> None:
    analysis = analyse(text)
    assert analysis is not None
    assert list(analysis.prefixes) == prefixes


@pytest.mark.parametrize(
    ("text", "writes"),
    [
        ("ls", False),
        ("ls > f", True),
        ("ls >> f", True),
        ("ls >| f", True),
        ("ls &> f", True),
        ("ls >& f", True),
        ("ls > $f", True),
        ("ls | cat > f", True),
        ("ls > /dev/null; ls > f", True),
        ("echo $(ls > f)", True),
        ("{ ls; } > f", True),
        ("for x in a; do ls; done > f", True),
        ("ls > /dev/null 2>&1", False),
        ("ls >'/dev/null'", False),
        ("ls 2>&1 | cat < in", False),
        ("ls 2>&-", False),
        ("echo 'a > b'", False),
    ],
)
def test_output_that_goes_to_a_file_is_flagged(text: str, writes: bool) -> None:
    analysis = analyse(text)
    assert analysis is not None
    assert analysis.writes_files is writes


SAFE = st.sampled_from(["ls", "git status", "wc -l", "echo 'a;b'", 'echo "a && b"', "cat <(ls)", "test -f x"])
HIDING_PLACES = st.sampled_from(
    [
        "{} ; %",
        "{} && %",
        "{} || %",
        "{} | %",
        "{} & %",
        "{}\n%",
        "{} $(%)",
        "{} `%`",
        '{} "$(%)"',
        "{} <(%)",
        "{} >(%)",
        "({} ; %)",
        "{{ {}; %; }}",
        "if {}; then %; fi",
        "while {}; do %; done",
        "for x in a; do {}; %; done",
        "case a in a) {};; b) %;; esac",
        "! {} || %",
        "{} > $(%)",
        "{} <<< $(%)",
        "{} <<E\n$(%)\nE\n",
    ]
)


@given(first=SAFE, places=st.lists(HIDING_PLACES, min_size=1, max_size=4))
def test_a_hidden_command_is_found_or_nothing_is_analysed(first: str, places: list[str]) -> None:
    text = "rm hidden"
    for place in places:
        text = place.replace("{}", first).replace("{{", "{").replace("}}", "}").replace("%", text)
    analysis = analyse(text)
    assert analysis is None or ("rm", "hidden") in [command.words for command in analysis.commands], text


@pytest.mark.slow
@settings(max_examples=300)
@given(st.text(st.sampled_from("abg \t\n;|&<>(){}[]$`'\"\\#!*?~=-/2xE"), max_size=40))
def test_no_input_breaks_the_analysis(text: str) -> None:
    analysis = analyse(text)
    if analysis is not None:
        assert all(command.words and command.words[0] for command in analysis.commands)
        assert set(analysis.prefixes) <= {
            command.words[: len(prefix)] for command in analysis.commands for prefix in analysis.prefixes
        }


@pytest.mark.parametrize(
    "name", ["http_proxy", "https_proxy", "all_proxy", "no_proxy", "npm_config_script_shell", "PATH", "IFS"]
)
def test_a_loop_over_a_variable_that_programs_read_is_not_understood(name: str) -> None:
    assert analyse(f"for {name} in a b; do ls; done") is None
    assert analyse("for file_name in a b; do ls; done") is not None
