import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from isthmus.__main__ import main
from isthmus.cli import main as main_module
from isthmus.cli import run as run_module
from isthmus.cli.main import run
from support.isthmus_program import ISTHMUS, isthmus
from support.wire_server import Answer, WireServer

WRONG = [
    pytest.param(["-p", "hi", "-m", "nope"], 42, "no model is called 'nope'", id="model"),
    pytest.param(["-p", "hi", "-m", "gemini:x"], 42, "GEMINI_API_KEY", id="key"),
    pytest.param(["-p", " "], 42, "prompt is empty", id="prompt"),
    pytest.param(["--input-format", "stream-json", "-p", "hi"], 42, "leave out --prompt", id="messages and prompt"),
    pytest.param(["-p", "hi", "--workspace", "/no/such/folder"], 42, "/no/such/folder", id="workspace"),
    pytest.param(["-p", "hi", "--max-turns", "0"], 42, "--max-turns", id="value"),
    pytest.param(["-p", "hi", "--no-such-option"], 42, "--no-such-option", id="option"),
    pytest.param(["-p", "hi", "-m", "demo", "--data-dir", "/dev/null/x"], 1, "/dev/null/x", id="data"),
    pytest.param(["connect", "http://127.0.0.1:1/", "-p", "hi"], 1, "nothing answers", id="server"),
    pytest.param(["connect", "nonsense", "-p", "hi"], 1, "'nonsense' is not the URL", id="url"),
]


@pytest.fixture(autouse=True)
def empty_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())


@pytest.mark.parametrize("flags", [["-o", "json"], ["--output-format=json"], ["-ojson"]])
@pytest.mark.parametrize(("arguments", "status", "message"), WRONG)
def test_what_fails_before_the_task_is_json_as_well(
    arguments: list[str], status: int, message: str, flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*arguments, *flags]) == status
    out, err = capsys.readouterr()
    result = json.loads(out)
    assert result["session_id"] == result["response"] == ""
    assert message in result["error"]["message"]
    assert result["error"]["code"] == status
    assert message in err


@pytest.mark.parametrize(("arguments", "status", "message"), WRONG)
def test_what_fails_before_the_task_ends_stream_json_with_a_result(
    arguments: list[str], status: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*arguments, "-o", "stream-json"]) == status
    [line] = capsys.readouterr().out.splitlines()
    result = json.loads(line)
    assert (result["type"], result["status"]) == ("result", "error")
    assert message in result["error"]["message"]


@pytest.mark.parametrize(("arguments", "status", "message"), WRONG)
def test_what_fails_before_the_task_is_said_on_stderr_alone(
    arguments: list[str], status: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert "Traceback" not in err


def test_ctrl_c_before_the_task_is_json_as_well(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run_module, "decide", interrupted)
    assert run(["-p", "hi", "-o", "json"]) == 130
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["type"], error["code"]) == ("FatalCancellationError", 130)


def test_ctrl_c_while_the_program_is_loaded_ends_it_without_a_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(main_module, "run", interrupted)
    monkeypatch.setattr(sys, "argv", ["isthmus", "-p", "hi"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("option", [["--approval-mode", "plan"], ["--workspace", "."], ["--no-ide"], ["-p", "hi"]])
def test_an_option_before_a_command_is_refused_rather_than_passed_over(
    option: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*option, "serve", "--port", "0"]) == 42
    err = capsys.readouterr().err
    assert "before `serve`" in err


@pytest.mark.parametrize("words", [["explain this"], ["explain", "this"], ["explain this", "-m", "demo"]])
def test_words_that_are_no_command_are_the_prompt(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*words, "-o", "json", "--no-such-option"]) == 42
    assert "--no-such-option" in capsys.readouterr().err
    assert run([*words, "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["response"]


def test_a_word_that_is_almost_a_command_is_not_sent_to_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["conect"]) == 42
    assert "Unknown command 'conect'. Did you mean connect?" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options",
    [
        ["hello", "-p", "hi"],
        ["hello", "-i", "hi"],
        ["-p", "hello", "-i", "hi"],
        ["-p", "hi", "-c", "--resume"],
        ["-p", "hi", "-y", "--approval-mode", "plan"],
        ["-i", "hi"],
    ],
)
def test_options_that_contradict_each_other_are_refused(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*options, "-m", "demo"]) == 42
    assert re.search("together|contradict|needs a terminal", capsys.readouterr().err)


@pytest.mark.parametrize("others", [["-p", "hi"], ["--resume", "latest"], ["-c"]])
@pytest.mark.parametrize("command", [[], ["connect", "http://127.0.0.1:1/"]])
def test_a_list_of_sessions_does_not_pass_over_other_wishes(
    command: list[str], others: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*command, "--list-sessions", *others]) == 42
    assert "--list-sessions cannot be used with" in capsys.readouterr().err


@pytest.mark.parametrize("entry", ["write_file(x)", "run_shell_command(", "run_shell_command()", "git status", "(ls)"])
def test_an_allowed_tool_of_no_known_form_is_refused(entry: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["-p", "hi", "-m", "demo", "--allowed-tools", entry]) == 42
    assert "expected the name of a tool" in capsys.readouterr().err


def test_what_an_error_quotes_does_not_control_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["connect", "http://\x1b]0;owned\x07", "-p", "hi"]) == 1
    assert "\x1b" not in capsys.readouterr().err
    with WireServer(lambda request: Answer(503, {}, (b"\x1b]0;owned\x07",))) as server:
        assert run(["connect", server.base_url, "-p", "hi"]) == 1
    assert "\x1b" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (["-m", "nope"], "no model is called 'nope'"),
        (["-m", "gemini:x"], "GEMINI_API_KEY"),
        (["--record", "/dev/null/frames"], "/dev/null/frames"),
    ],
)
def test_a_demonstration_that_cannot_be_starts_nothing(
    option: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["demo", "--editor", "headless", *option]) == 42
    out, err = capsys.readouterr()
    assert message in err
    assert out == ""


@pytest.mark.parametrize("url", ["agent.example.org", "ftp://agent.example.org/", "https://", "https:///path"])
def test_a_public_url_that_is_none_is_refused(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", "--public-url", url]) == 42
    assert repr(url) in capsys.readouterr().err


@pytest.mark.parametrize("origin", ["*", "null", "https://app.example/"])
def test_an_allowed_origin_that_is_none_is_refused(origin: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", "--allow-origin", origin]) == 42
    assert f"--allow-origin {origin!r} is not the origin of web pages" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(("closed", "status"), [("<&-", "0"), ("<&- >&-", "1"), ("<&- >&- 2>&-", "1")])
def test_a_program_with_closed_streams_says_that_its_answer_is_lost(closed: str, status: str, tmp_path: Path) -> None:
    command = " ".join(f"'{word}'" for word in (*ISTHMUS, "-m", "demo"))
    ended = subprocess.run(
        ["bash", "-c", f"{command} {closed}; echo $? > status; {command} -p hi {closed}; echo $? >> status"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (tmp_path / "status").read_text("utf-8").split() == ["42", status]
    assert "Traceback" not in ended.stderr
    assert ("the output cannot be written: it is closed" in ended.stderr) == (closed == "<&- >&-")


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no full device")  # noqa: PTH110
@pytest.mark.parametrize(
    "arguments",
    [
        *(["--help"], ["--list-sessions"], ["serve", "--help"], ["--version"], ["-p", "hi", "-m", "demo"]),
        *(["-p", "hi", "-m", "demo", "-o", output] for output in ("json", "stream-json")),
    ],
    ids=" ".join,
)
def test_an_output_that_is_full_is_one_line_and_not_a_traceback(arguments: list[str], tmp_path: Path) -> None:
    assert isthmus("-p", "hi", "-m", "demo", folder=tmp_path, text="").returncode == 0
    with open("/dev/full", "w") as full:  # noqa: PTH123
        ended = subprocess.run(
            [*ISTHMUS, *arguments], cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
        )
    assert ended.returncode in (1, 130)  # a stream of events that nobody gets is interrupted
    assert ended.stderr.endswith(f"isthmus: the output cannot be written: {os.strerror(28)}\n")
    assert "Traceback" not in ended.stderr


def test_the_version_is_said_also_where_nobody_listens(tmp_path: Path) -> None:
    ended = subprocess.run(
        ["bash", "-c", f"'{sys.executable}' -m isthmus --version >&-"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize(
    "arguments",
    [["doctor"], ["ide", "diffs"], ["companion", "--editor", "headless"], ["bridge"], ["-p", "hi", "-o", "json"]],
)
def test_a_folder_that_was_deleted_meanwhile_is_one_line_and_not_a_traceback(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert run(arguments) == 42
    assert "no longer exists" in capsys.readouterr().err


def test_a_folder_whose_path_is_not_utf_8_is_refused_by_that_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = os.fsencode(tmp_path) + b"/a\xff"
    os.mkdir(folder)  # noqa: PTH102 - bytes
    monkeypatch.chdir(os.fsdecode(folder))
    assert run(["-p", "hi", "-m", "demo"]) == 42
    assert "/a\\xff is not UTF-8, so no client could be told of it. Rename the folder." in capsys.readouterr().err
