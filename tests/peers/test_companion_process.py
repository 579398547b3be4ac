"""The companion as a program: its discovery file, its end, its restart, and the user's commands beside it."""

import asyncio
import json
import os
import shlex
import signal
import socket
import stat
import subprocess
from pathlib import Path

import pytest

from isthmus.files.locations import data_directory
from isthmus.ide.control import control_client
from isthmus.ide.reviews.kept_text import KeptTexts
from isthmus.ide.reviews.review import DiffReview
from support.companion_clients import proposing_agent, status_at
from support.extended import first_of
from support.isolation import IsolatedFolders
from support.isthmus_program import ISTHMUS, companion_program, isthmus, read_line
from support.neovim import running_neovim
from support.pty_program import pty_program
from support.waiting import eventually

SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.requirement("GEM-005", "GEM-006", "GEM-009", "GEM-010")
def test_the_discovery_file_lies_in_the_folder_that_node_calls_tmpdir(
    workspace: Path, isolated_folders: IsolatedFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", f"{isolated_folders.temporary}/")
    with companion_program(workspace) as companion, companion_program(workspace) as other:
        assert companion.discovery_file.parent == isolated_folders.temporary / "gemini" / "ide"
        assert companion.ready["port"] != other.ready["port"]
        assert status_at(companion.ready["port"]) == 401


@pytest.mark.requirement("GEM-011", "GEM-013", "GEM-014", "GEM-015")
def test_the_discovery_file_names_process_and_port(workspace: Path) -> None:
    with companion_program(workspace) as companion:
        port = companion.discovered["port"]
        assert companion.discovery_file.name == f"gemini-ide-server-{companion.process.pid}-{port}.json"
        assert set(companion.discovered) == {"port", "workspacePath", "authToken", "ideInfo"}
        assert isinstance(port, int)
        assert status_at(port) == 401


@pytest.mark.requirement("GEM-016", "GEM-022", "GEM-023", "GEM-024")
def test_the_discovery_file_names_workspace_and_editor(workspace: Path, tmp_path: Path) -> None:
    with companion_program(workspace, "--workspace", ".", "--workspace", str(tmp_path)) as companion:
        assert companion.discovered["workspacePath"] == f"{workspace}:{tmp_path.resolve()}"
        assert companion.discovered["ideInfo"] == {"name": "headless", "displayName": "Isthmus (headless)"}


@pytest.mark.anyio
@pytest.mark.requirement("GEM-012", "GEM-016", "GEM-024", "GEM-087")
async def test_a_companion_at_a_neovim_is_found_by_its_process_and_ends_with_it(workspace: Path) -> None:
    async with running_neovim(workspace) as neovim:
        with companion_program(workspace, "--editor", "nvim", "--address", neovim.address) as companion:
            path = companion.discovery_file
            assert path.name == f"gemini-ide-server-{neovim.process.pid}-{companion.ready['port']}.json"
            assert companion.discovered["workspacePath"] == str(workspace)
            assert companion.discovered["ideInfo"] == {"name": "neovim", "displayName": "Neovim"}
            await neovim.quit()
            assert await asyncio.to_thread(companion.process.wait, 60) == 0
            assert not path.exists()


@pytest.mark.requirement("GEM-020", "GEM-025")
def test_each_companion_has_a_long_token_of_its_own(workspace: Path) -> None:
    with companion_program(workspace) as one, companion_program(workspace) as two:
        tokens = {one.discovered["authToken"], two.discovered["authToken"]}
        assert len(tokens) == 2
        assert all(len(token) >= 32 for token in tokens)


def test_secrets_are_readable_by_their_owner_alone_whatever_the_umask(
    workspace: Path, isolated_folders: IsolatedFolders
) -> None:
    before = os.umask(0)
    try:
        with companion_program(workspace) as companion:
            assert _mode(companion.discovery_file) == 0o600
            folders = [companion.discovery_file.parent, isolated_folders.runtime / "isthmus"]
            folders.append(isolated_folders.home / ".local" / "share" / "isthmus")
            for folder in folders:
                assert _mode(folder) & 0o077 == 0, folder
                for file in folder.rglob("*"):
                    assert _mode(file) & 0o077 == 0, file
    finally:
        os.umask(before)


@pytest.mark.requirement("GEM-085")
def test_the_server_listens_before_the_discovery_file_appears(
    workspace: Path, isolated_folders: IsolatedFolders
) -> None:
    folder = isolated_folders.temporary / "gemini" / "ide"
    process = subprocess.Popen(
        [*ISTHMUS, "companion", "--editor", "headless"], cwd=workspace, stdout=subprocess.DEVNULL
    )
    try:
        (path,) = eventually(lambda: list(folder.glob("gemini-ide-server-*.json")), what="a discovery file")
        assert status_at(json.loads(path.read_text(encoding="utf-8"))["port"]) == 401
    finally:
        process.terminate()
        process.wait(30)


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
@pytest.mark.requirement("GEM-084", "GEM-086", "GEM-087")
def test_a_signal_stops_the_server_and_removes_every_file_of_the_run(
    workspace: Path, isolated_folders: IsolatedFolders, number: signal.Signals
) -> None:
    with companion_program(workspace) as companion:
        assert companion.end(number) == 0
        assert not companion.discovery_file.exists()
        assert list((isolated_folders.runtime / "isthmus").iterdir()) == []
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", companion.ready["port"]), timeout=30)
        assert companion.process.stderr is not None
        assert companion.process.stderr.read() == ""


@pytest.mark.parametrize("number", first_of([signal.SIGKILL, signal.SIGTERM]), ids=lambda number: number.name)
def test_a_restart_on_the_same_workspace_takes_over_port_and_token(workspace: Path, number: signal.Signals) -> None:
    with companion_program(workspace) as companion:
        before = companion.discovered
        companion.end(number)
        assert companion.discovery_file.exists() == (number == signal.SIGKILL)
    with companion_program(workspace) as again:
        assert (again.discovered["port"], again.discovered["authToken"]) == (before["port"], before["authToken"])
        assert not companion.discovery_file.exists()


def test_a_fresh_restart_has_a_new_token_and_removes_the_stale_file(workspace: Path) -> None:
    with companion_program(workspace) as companion:
        before = companion.discovered["authToken"]
        companion.end(signal.SIGKILL)
    with companion_program(workspace, "--fresh") as again:
        assert again.discovered["authToken"] != before
        assert not companion.discovery_file.exists()


def test_a_port_that_somebody_took_meanwhile_is_not_waited_for(workspace: Path) -> None:
    with companion_program(workspace) as companion:
        before = companion.discovered
        companion.end()
    with socket.create_server(("127.0.0.1", before["port"])), companion_program(workspace) as again:
        assert again.discovered["port"] != before["port"]
        assert again.discovered["authToken"] != before["authToken"]


def test_the_user_opens_selects_mentions_and_closes_files_from_another_terminal(workspace: Path) -> None:
    (workspace / "a.py").write_text("one\ntwo\nthree\n", encoding="utf-8")
    (workspace / "sub").mkdir()

    def active(*arguments: str) -> dict[str, object]:
        done = isthmus("ide", *arguments, "--json", folder=workspace / "sub")
        assert done.returncode == 0, done.stderr
        files = json.loads(done.stdout)["context"]["workspaceState"]["openFiles"]
        return {key: value for key, value in files[0].items() if key in ("cursor", "selectedText")} if files else {}

    with companion_program(workspace, "--open", "a.py:2:3"):
        assert active("status") == {"cursor": {"line": 2, "character": 3}}
        assert active("open", "../a.py:3") == {"cursor": {"line": 3, "character": 1}}
        assert active("select", "../a.py:1:2-2:3")["selectedText"] == "ne\ntw"
        assert active("select", "../a.py:2")["selectedText"] == "two\n"
        (workspace / "b.py").write_text("x = '😀é'\n", encoding="utf-8")
        assert active("select", "../b.py:1:6-1:8")["selectedText"] == "😀é"
        isthmus("ide", "close", "b.py", folder=workspace)
        assert active("mention", "../a.py:1-2")["selectedText"] == "one\ntwo\n"
        assert active("close", "../a.py") == {}
        missing = isthmus("ide", "open", "missing.py", folder=workspace)
        assert missing.returncode == 1
        assert "missing.py" in missing.stderr


def test_the_user_sets_and_clears_diagnostics(workspace: Path) -> None:
    (workspace / "a.py").write_text("one\n", encoding="utf-8")
    with companion_program(workspace):
        isthmus("ide", "diagnostics", "a.py", "--add", "1:2", "bad name", "--severity", "warning", folder=workspace)
        entries = json.dumps([{"line": 3, "message": "worse"}])
        shown = isthmus("ide", "diagnostics", folder=workspace)
        assert shown.stdout == f"{workspace}/a.py:1:2: warning: bad name\n"
        isthmus("ide", "diagnostics", "a.py", "--set", "-", folder=workspace, text=entries)
        shown = isthmus("ide", "diagnostics", "a.py", "--json", folder=workspace)
        (found,) = json.loads(shown.stdout)["diagnostics"]
        assert (found["line"], found["severity"], found["message"]) == (3, "error", "worse")
        isthmus("ide", "diagnostics", "a.py", "--clear", folder=workspace)
        assert json.loads(isthmus("ide", "diagnostics", "--json", folder=workspace).stdout)["diagnostics"] == []


@pytest.mark.parametrize(
    ("arguments", "text", "method", "params"),
    [
        (("accept", "a.py"), None, "ide/diffAccepted", {"content": "new\n"}),
        (("accept", "a.py", "--content", "-"), "mine\r\n", "ide/diffAccepted", {"content": "mine\r\n"}),
        (("reject", "a.py"), None, "ide/diffRejected", {}),
    ],
    ids=["accept", "accept with other text", "reject"],
)
@pytest.mark.requirement("GEM-078", "GEM-082")
def test_the_user_answers_a_proposed_edit_from_another_terminal(
    workspace: Path, arguments: tuple[str, ...], text: str | None, method: str, params: dict[str, str]
) -> None:
    file = workspace / "a.py"
    file.write_text("old\n", encoding="utf-8")
    with companion_program(workspace) as companion, proposing_agent(companion, file) as agent:
        shown = isthmus("ide", "diffs", "--wait", "20", folder=workspace)
        assert "-old\n+new\n" in shown.stdout
        assert read_line(agent) == "proposed"
        done = isthmus("ide", *arguments, folder=workspace, text=text)
        assert done.returncode == 0, done.stderr
        assert json.loads(read_line(agent)) == {
            "jsonrpc": "2.0",
            "method": method,
            "params": {"filePath": str(file), **params},
        }
        again = isthmus("ide", *arguments, folder=workspace, text=text)
        assert again.returncode == 1
        assert "no diff is open" in again.stderr
    assert file.read_text(encoding="utf-8") == "old\n"


@pytest.mark.parametrize("allowed", first_of([False, True]))
def test_an_agent_does_not_answer_its_own_question_unless_that_was_allowed(workspace: Path, allowed: bool) -> None:
    file = workspace / "a.py"
    options = ("--allow-agent-accept",) if allowed else ()
    with (
        companion_program(workspace, *options) as companion,
        proposing_agent(companion, file, *ISTHMUS, "ide", "accept", "a.py") as agent,
    ):
        assert read_line(agent) == "proposed"
        outcome = json.loads(read_line(agent, 40))
        assert outcome["code"] == (0 if allowed else 1)
        assert ("--allow-agent-accept" in outcome["error"]) != allowed
        diffs = json.loads(isthmus("ide", "diffs", "--json", folder=workspace).stdout)["diffs"]
        assert len(diffs) == (0 if allowed else 1)


def test_ide_names_the_companions_that_run_when_none_fits(workspace: Path, tmp_path: Path) -> None:
    kept = KeptTexts(data_directory() / "kept").keep(
        DiffReview("r1", f"{workspace}/a.py", "new", "", "Gemini CLI"), "mine"
    )
    none = isthmus("ide", "status", folder=workspace)
    assert kept.kept_at in none.stderr
    assert none.returncode == 1
    assert "isthmus companion" in none.stderr
    with companion_program(workspace) as companion:
        elsewhere = isthmus("ide", "status", "--json", folder=tmp_path)
        assert elsewhere.returncode == 1
        assert str(companion.ready["port"]) in json.loads(elsewhere.stdout)["error"]
        for option in (("--port", str(companion.ready["port"])), ("--workspace", str(workspace))):
            found = isthmus("ide", "status", "--json", *option, folder=tmp_path)
            assert json.loads(found.stdout)["port"] == companion.ready["port"]


def test_a_workspace_that_does_not_exist_is_refused_with_its_name(workspace: Path) -> None:
    done = isthmus("companion", "--editor", "headless", "--workspace", "missing", folder=workspace)
    assert done.returncode == 42
    assert "missing" in done.stderr


def test_a_file_to_open_that_does_not_exist_is_refused_and_nothing_is_left(
    workspace: Path, isolated_folders: IsolatedFolders
) -> None:
    done = isthmus("companion", "--editor", "headless", "--open", "missing.py", folder=workspace)
    assert done.returncode == 1
    assert "missing.py" in done.stderr
    assert not (isolated_folders.temporary / "gemini").exists()


def test_a_runtime_folder_that_was_made_for_others_too_is_closed_to_them(
    workspace: Path, isolated_folders: IsolatedFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(isolated_folders.runtime / "missing"))
    folder = isolated_folders.temporary / f"isthmus-{os.getuid()}"
    folder.mkdir()
    folder.chmod(0o777)
    with companion_program(workspace):
        assert _mode(folder) == 0o700
        assert isthmus("ide", "status", folder=workspace).returncode == 0


def test_a_runtime_folder_that_leads_elsewhere_is_refused(
    workspace: Path, isolated_folders: IsolatedFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    (isolated_folders.temporary / f"isthmus-{os.getuid()}").symlink_to(tmp_path)
    done = isthmus("companion", "--editor", "headless", folder=workspace)
    assert done.returncode == 1
    assert "XDG_RUNTIME_DIR" in done.stderr
    assert not list((isolated_folders.temporary / "gemini").rglob("*.json"))


def test_a_neovim_that_cannot_be_found_or_reached_is_a_clear_error(workspace: Path, tmp_path: Path) -> None:
    done = isthmus("companion", "--editor", "nvim", folder=workspace)
    assert done.returncode == 1
    assert "--address" in done.stderr
    done = isthmus("companion", "--editor", "nvim", "--address", str(tmp_path / "nobody"), folder=workspace)
    assert done.returncode == 1
    assert "nobody" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_second_companion_of_a_folder_says_that_there_is_one_already(workspace: Path) -> None:
    with companion_program(workspace) as first, companion_program(workspace) as second:
        said = f"this folder already has another companion without an editor, on port {first.ready['port']}"
        assert second.process.stderr is not None
        assert said in second.process.stderr.readline()


def test_at_a_terminal_it_says_what_comes_next_and_ctrl_c_ends_it(workspace: Path) -> None:
    command = [*ISTHMUS, "companion", "--editor", "headless"]
    with pty_program(command, folder=workspace, environment=dict(os.environ)) as terminal:
        terminal.wait_for("Companion ready on port", 60).wait_for("/ide enable")
        terminal.wait_for(r"in another terminal").wait_for(r"Ctrl-C stops the companion")
        assert terminal.press("\x03").wait_for_exit() == 0


def test_behind_a_shell_it_says_how_to_end_it_there(workspace: Path) -> None:
    in_background = f"{shlex.join([*ISTHMUS, 'companion', '--editor', 'headless'])} & wait"
    with pty_program(["bash", "-mc", in_background], folder=workspace, environment=dict(os.environ)) as terminal:
        terminal.wait_for("Companion ready on port", 60).wait_for("in this or another terminal")
        (companion,) = control_client.running()
        assert f"`kill {companion.pid}` stops the companion" in " ".join(terminal.screen.split())
        os.kill(companion.pid, signal.SIGTERM)
        terminal.wait_for_exit()


def test_a_discovery_folder_that_cannot_be_made_is_a_clear_error(
    workspace: Path, isolated_folders: IsolatedFolders
) -> None:
    (isolated_folders.temporary / "gemini").write_text("in the way", encoding="utf-8")
    done = isthmus("companion", "--editor", "headless", "--protocol", "gemini", folder=workspace)
    assert done.returncode == 1
    assert str(isolated_folders.temporary / "gemini") in done.stderr
    assert "Traceback" not in done.stderr


def test_whatever_fails_in_ide_is_json_too_when_that_was_asked_for(workspace: Path) -> None:
    (workspace / "a.py").write_text("a\nb\nc\n", encoding="utf-8")
    failing = (
        ("status", "--port", "1"),
        ("open",),
        ("open", "missing.py"),
        ("select", "a.py:3-2"),
        ("diffs", "--wait", "inf"),
        ("diffs", "--wait", "nan"),
        ("accept", "a.py", "--content", "missing"),
        ("diagnostics", "--clear"),
        ("no-such-command",),
    )
    with companion_program(workspace):
        for arguments in failing:
            plain = isthmus("ide", *arguments, folder=workspace)
            failed = isthmus("ide", *arguments, "--json", folder=workspace)
            assert plain.returncode == failed.returncode != 0, arguments
            assert plain.stdout == "", arguments
            assert json.loads(failed.stdout).keys() == {"error"}, arguments
            assert "Traceback" not in plain.stderr + failed.stderr, arguments


@pytest.mark.parametrize(
    "arguments",
    [("--editor", "vim"), ("--workspace", "missing"), ("--workspace", "x" * 5000), ("--open", "missing")],
    ids=["editor", "workspace", "a name too long", "file"],
)
def test_a_companion_that_cannot_start_says_so_in_json_when_that_was_asked_for(
    workspace: Path, arguments: tuple[str, ...]
) -> None:
    failed = isthmus("companion", "--json", "--editor", "headless", *arguments, folder=workspace)
    assert failed.returncode != 0
    assert json.loads(failed.stdout).keys() == {"error"}


def test_a_folder_that_is_named_twice_is_one_workspace(workspace: Path) -> None:
    with companion_program(workspace, "--workspace", ".", "--workspace", str(workspace)) as companion:
        assert companion.discovered["workspacePath"] == str(workspace)


def test_a_companion_whose_ready_line_nobody_reads_runs_and_ends_well(
    workspace: Path, isolated_folders: IsolatedFolders
) -> None:
    command = [*ISTHMUS, "companion", "--editor", "headless"]
    with subprocess.Popen(command, cwd=workspace, stdout=subprocess.PIPE) as companion:
        assert companion.stdout is not None
        companion.stdout.close()
        folder = isolated_folders.temporary / "gemini" / "ide"
        eventually(lambda: folder.is_dir() and list(folder.iterdir()), what="the discovery file")
        companion.send_signal(signal.SIGTERM)
        assert companion.wait(30) == 0


def test_an_address_alone_means_neovim(workspace: Path) -> None:
    done = isthmus("companion", "--address", str(workspace / "nobody.sock"), folder=workspace)
    assert done.returncode == 1
    assert "nobody.sock" in done.stderr
    assert "headless" not in done.stderr
