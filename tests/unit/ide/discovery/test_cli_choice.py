"""The editor that each real CLI selects, from files and facts alone. tests/peers compares this with the CLIs."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from isthmus.ide.claude.protocol import CLAUDE as CLAUDE_PROTOCOL
from isthmus.ide.cli_choice import Announcement, CliChoice, Here
from isthmus.ide.discovery.connecting import Candidates
from isthmus.ide.discovery.doctor import choices, isthmus_choice
from isthmus.ide.gemini.protocol import GEMINI as GEMINI_PROTOCOL
from isthmus.ide.ide_protocol import FoundIde

GEMINI, QWEN, CLAUDE = CLIS = "Gemini CLI", "Qwen Code", "Claude Code"
FOLDER = "/project/project"


def file(cli: str, port: int, pid: int | None = None, folder: str = "/project", **more: object) -> Announcement:
    name = {
        GEMINI: f"/tmp/gemini/ide/gemini-ide-server-{pid}-{port}.json",
        QWEN: f"/home/me/.qwen/ide/{port}.lock",
        CLAUDE: f"/home/me/.claude/ide/{port}.lock",
    }[cli]
    return replace(
        Announcement(cli, name, None, port, port if pid is None else pid, (folder,), f"Editor {port}"),
        **more,  # type: ignore[arg-type]
    )


def choose(
    cli: str,
    *files: Announcement,
    environment: Mapping[str, str] | None = None,
    editor_pid: int | None = None,
    dead: tuple[int, ...] = (),
    closed: tuple[int, ...] = (),
    more_ports: tuple[int, ...] = (),
    in_container: bool = False,
) -> CliChoice:
    here = Here(
        FOLDER,
        environment or {},
        editor_pid,
        in_container,
        frozenset(one.pid for one in files if one.pid is not None) - set(dead),
        (frozenset(one.port for one in files) | set(more_ports)) - set(closed),
    )
    (choice,) = (choice for choice in choices(files, here) if choice.cli == cli)
    assert choice.connects or choice.advice
    return choice


@pytest.mark.parametrize("cli", CLIS)
def test_the_only_editor_of_the_folder_is_taken(cli: str) -> None:
    fitting, other = file(cli, 1001), file(cli, 1002, folder="/elsewhere")
    choice = choose(cli, other, fitting)
    assert (choice.connects, choice.source, choice.port) == (True, fitting.path, 1001)
    assert "only one" in choice.reason


@pytest.mark.parametrize("cli", CLIS)
def test_without_any_file_nothing_is_found(cli: str) -> None:
    choice = choose(cli)
    assert (choice.connects, choice.source) == (False, None)
    assert "isthmus companion" in choice.advice


@pytest.mark.parametrize("cli", CLIS)
def test_an_editor_elsewhere_is_named_with_the_folder_to_go_to(cli: str) -> None:
    silent = file(cli, 1002, folder="/silent")
    choice = choose(cli, file(cli, 1001, folder="/elsewhere"), silent, closed=(1002,))
    assert not choice.connects
    assert "/elsewhere" in choice.advice
    assert "/silent" not in choice.advice


@pytest.mark.parametrize("cli", CLIS)
def test_a_port_where_nobody_listens_is_told_with_the_file_that_names_it(cli: str) -> None:
    choice = choose(cli, file(cli, 1001), closed=(1001,))
    assert (choice.connects, choice.port) == (False, 1001)
    assert "nobody listens" in choice.reason
    assert file(cli, 1001).path in choice.advice


def test_gemini_cli_prefers_its_own_editor_then_the_living_then_the_highest_process() -> None:
    files = [file(GEMINI, 1000 + pid, pid) for pid in (10, 20, 30, 40)]
    assert choose(GEMINI, *files, editor_pid=20).port == 1020
    assert choose(GEMINI, *files, environment={"GEMINI_CLI_IDE_PID": "10"}, editor_pid=20).port == 1010
    assert choose(GEMINI, *files, dead=(40,)).port == 1030
    assert choose(GEMINI, *files, environment={"GEMINI_CLI_IDE_SERVER_PORT": "1010"}, editor_pid=20).port == 1010


def test_gemini_cli_tries_no_other_file_but_the_port_of_the_variable() -> None:
    files = [file(GEMINI, 1001, 10), file(GEMINI, 1002, 20)]
    assert not choose(GEMINI, *files, closed=(1002,)).connects
    variables = {"GEMINI_CLI_IDE_SERVER_PORT": "1003"}
    by_variable = choose(GEMINI, *files, closed=(1002,), environment=variables, more_ports=(1003,))
    assert (by_variable.connects, by_variable.source) == (True, "GEMINI_CLI_IDE_SERVER_PORT")


def test_gemini_cli_takes_a_file_of_the_old_name_for_its_own_editor_alone() -> None:
    old = file(GEMINI, 1001, 10, number=10)
    assert choose(GEMINI, old, file(GEMINI, 1002, 20), editor_pid=10).port == 1001
    assert choose(GEMINI, old, file(GEMINI, 1002, 20), editor_pid=11).port == 1002
    assert not choose(GEMINI, replace(old, folders=("/elsewhere",)), file(GEMINI, 1002, 20), editor_pid=10).connects


def test_gemini_cli_needs_to_know_what_the_editor_is() -> None:
    nameless = file(GEMINI, 1001, has_identity=False)
    assert "ideInfo" in choose(GEMINI, nameless).advice
    assert choose(GEMINI, nameless, environment={"TERM_PROGRAM": "vscode"}).connects
    assert choose(GEMINI, nameless, environment={"TERMINAL_EMULATOR": "JetBrains-JediTerm"}).connects


@pytest.mark.parametrize(
    ("missing", "connects"),
    [
        (None, True),
        ("TERM_PROGRAM", False),
        ("GEMINI_CLI_IDE_WORKSPACE_PATH", False),
        ("GEMINI_CLI_IDE_SERVER_PORT", False),
    ],
)
def test_gemini_cli_goes_by_its_variables_when_there_is_no_file(missing: str | None, connects: bool) -> None:
    variables = {
        "TERM_PROGRAM": "Zed",
        "GEMINI_CLI_IDE_SERVER_PORT": "1001",
        "GEMINI_CLI_IDE_WORKSPACE_PATH": "/other:/project",
    }
    variables.pop(missing or "", None)
    assert choose(GEMINI, environment=variables, more_ports=(1001,)).connects is connects
    elsewhere = variables | {"GEMINI_CLI_IDE_WORKSPACE_PATH": "/other"}
    assert not choose(GEMINI, environment=elsewhere, more_ports=(1001,)).connects


def test_gemini_cli_in_a_container_looks_outside_unless_it_is_told() -> None:
    choice = choose(GEMINI, file(GEMINI, 1001), in_container=True)
    assert "REMOTE_CONTAINERS" in choice.advice
    assert choose(GEMINI, file(GEMINI, 1001), in_container=True, environment={"REMOTE_CONTAINERS": "1"}).connects
    assert choose(QWEN, file(QWEN, 1001), in_container=True).connects


def test_qwen_code_prefers_its_terminals_port_then_the_newest_live_lock() -> None:
    files = [file(QWEN, port, modified_at=float(port)) for port in (1001, 1003, 1002)]
    assert choose(QWEN, *files).port == 1003
    assert choose(QWEN, *files, dead=(1003,)).port == 1002
    assert choose(QWEN, *files, environment={"QWEN_CODE_IDE_SERVER_PORT": "1001"}).port == 1001


def test_qwen_code_tries_the_other_fitting_locks_when_nobody_listens() -> None:
    files = [file(QWEN, port, modified_at=float(port)) for port in (1001, 1003, 1002)]
    assert choose(QWEN, *files, closed=(1003,)).port == 1002
    assert not choose(QWEN, *files, closed=(1001, 1002, 1003)).connects


def test_qwen_code_has_no_token_for_a_port_without_a_lock() -> None:
    choice = choose(QWEN, environment={"QWEN_CODE_IDE_SERVER_PORT": "1001"}, more_ports=(1001,))
    assert (choice.connects, choice.port) == (False, 1001)
    assert "token" in choice.reason


def test_qwen_code_reads_the_files_of_older_companions_first() -> None:
    old = file(QWEN, 1001, number=77, modified_at=1.0)
    assert choose(QWEN, old, file(QWEN, 1002, modified_at=2.0), editor_pid=77).port == 1001
    assert choose(QWEN, old, file(QWEN, 1002, modified_at=2.0)).port == 1002


def test_claude_code_takes_none_of_two_that_fit() -> None:
    choice = choose(CLAUDE, file(CLAUDE, 1001), file(CLAUDE, 1002), closed=(1002,))
    assert (choice.connects, choice.source) == (False, None)
    assert "2 lock files fit" in choice.reason
    assert file(CLAUDE, 1002).path in choice.advice
    assert file(CLAUDE, 1001).path not in choice.advice


def test_claude_code_passes_over_locks_whose_process_is_gone() -> None:
    assert choose(CLAUDE, file(CLAUDE, 1001), file(CLAUDE, 1002), dead=(1002,)).port == 1001
    assert not choose(CLAUDE, file(CLAUDE, 1001), dead=(1001,)).connects


def test_claude_code_takes_the_port_of_its_terminal_whatever_its_folders_are() -> None:
    files = [file(CLAUDE, 1001), file(CLAUDE, 1002, folder="/elsewhere")]
    named = {"CLAUDE_CODE_SSE_PORT": "1002"}
    assert choose(CLAUDE, *files, environment=named).source == files[1].path
    choice = choose(CLAUDE, *files, environment=named, closed=(1002,))
    assert (choice.connects, choice.source) == (False, "CLAUDE_CODE_SSE_PORT")
    assert "unset CLAUDE_CODE_SSE_PORT" in choice.advice
    assert choose(CLAUDE, environment=named, more_ports=(1002,)).source == "CLAUDE_CODE_SSE_PORT"


@pytest.mark.parametrize(
    ("prefers_claude", "open_ports", "port"),
    [(True, {1001, 1002}, 1001), (False, {1001, 1002}, 1002), (True, {1002}, 1002), (False, set[int](), None)],
)
def test_isthmus_takes_the_best_candidate_that_answers(
    prefers_claude: bool, open_ports: set[int], port: int | None
) -> None:
    ide = FoundIde(1001, "t", "Vim", "Vim", 10, ("/project",), "/home/me/.claude/ide/1001.lock")
    companion = FoundIde(1002, "t", "vim", "Vim", 10, ("/project",), "/tmp/gemini/ide/gemini-ide-server-10-1002.json")
    here = Here(FOLDER, {}, open_ports=frozenset(open_ports))
    of_claude, of_gemini = (CLAUDE_PROTOCOL, (ide,)), (GEMINI_PROTOCOL, (companion,))
    ranked = dict([of_claude, of_gemini] if prefers_claude else [of_gemini, of_claude])
    choice = isthmus_choice(Candidates(ranked, ()), (), here)
    assert (choice.connects, choice.port) == (port is not None, port)
    nothing = isthmus_choice(Candidates({}, ()), [file(GEMINI, 1002, folder="/elsewhere")], here)
    assert not nothing.connects
    assert ("/elsewhere" in nothing.advice) is (1002 in open_ports)
