"""The command ``isthmus companion --editor stdio``, started by a plugin: its streams, its lifetime, and the example."""

import json
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from isthmus.files.locations import data_directory
from support import agent_program
from support.companion import attached_agent
from support.isolation import IsolatedFolders
from support.isthmus_program import ISTHMUS, isthmus, read_line
from support.waiting import eventually

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "editors" / "minimal_editor.py"


class Plugin:
    """The frames of a plugin that started the companion, written and read one at a time."""

    def __init__(self, process: "subprocess.Popen[bytes]", capabilities: dict[str, Any]) -> None:
        self.process = process
        self._input: IO[bytes] = process.stdin or sys.stdin.buffer
        self._output: IO[bytes] = process.stdout or sys.stdin.buffer
        hello = {"editorInfo": {"name": "ed", "displayName": "Ed"}, "capabilities": capabilities}
        self.send(id=1, method="initialize", params=hello)
        assert self.read()["result"]["positionEncoding"] == "utf-16"
        self.send(method="initialized")
        self.ready: dict[str, Any] = self.until("companion/ready")["params"]

    def send(self, **message: Any) -> None:
        """Send one message."""
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._input.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._input.flush()

    def read(self) -> dict[str, Any]:
        """Return the next frame; fail if anything else is on the stream."""
        header = self._output.readline()
        assert header.startswith(b"Content-Length: "), header
        assert self._output.readline() == b"\r\n"
        return json.loads(self._output.read(int(header.split()[1])))

    def until(self, method: str) -> dict[str, Any]:
        """Return the next message of this method, without the requests for open files before it."""
        while (message := self.read()).get("method") != method:
            if message.get("method") == "editor/openFiles":
                self.send(id=message["id"], result=[])
        return message

    def close_input(self) -> None:
        """Close the input, as a plugin that ends without a message."""
        self._input.close()

    def rest(self) -> bytes:
        """Return the rest of the companion's output."""
        return self._output.read()

    def gone(self) -> None:
        """Wait until the companion has ended by itself, without its discovery files."""
        self.rest()
        assert self.process.wait(30) == 0
        assert not any(Path(file).exists() for file in self.ready["discoveryFiles"])


@contextmanager
def plugin(folder: Path, **capabilities: Any) -> Generator[Plugin]:
    """Start the companion as a plugin does; kill it afterwards."""
    process = subprocess.Popen(
        [*ISTHMUS, "companion", "--editor", "stdio"],
        cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    with process:
        try:
            yield Plugin(process, capabilities)
        finally:
            process.kill()


def test_agents_find_the_companion_of_a_plugin_and_it_ends_with_a_farewell(workspace: Path) -> None:
    with plugin(workspace) as editor:
        assert all(Path(file).is_file() for file in editor.ready["discoveryFiles"])
        assert editor.ready["environment"]["GEMINI_CLI_IDE_SERVER_PORT"].isdigit()
        assert "127.0.0.1" in editor.ready["environment"]["NO_PROXY"]
        editor.send(id=2, method="shutdown")
        assert editor.read() == {"jsonrpc": "2.0", "id": 2, "result": None}
        editor.send(method="exit")
        editor.gone()


def test_the_ready_line_is_for_people_on_standard_error(workspace: Path) -> None:
    with plugin(workspace) as editor:
        editor.close_input()
        editor.gone()
        assert editor.process.stderr is not None
        assert editor.process.stderr.read().startswith(b"Companion ready on port ")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_companion_and_its_output(workspace: Path, number: int) -> None:
    with plugin(workspace) as editor:
        editor.process.send_signal(number)
        editor.gone()


def test_the_text_in_an_open_review_is_kept_when_the_companion_ends(workspace: Path) -> None:
    path = workspace / "a.py"
    with plugin(workspace, diff=True) as editor:
        (file,) = [file for file in editor.ready["discoveryFiles"] if "gemini-ide-server" in file]
        with proposing(json.loads(Path(file).read_text(encoding="utf-8")), path) as agent:
            shown = editor.until("editor/openDiff")
            review = {"id": shown["params"]["id"]}
            assert shown["params"] == review | {
                "uri": path.as_uri(), "proposed": "new\n", "title": "an agent", "isNewFile": True,
            }  # fmt: skip
            editor.send(id=shown["id"], result=None)
            assert read_line(agent) == "proposed"
            editor.process.terminate()
            closing = editor.until("editor/closeDiff")
            assert closing["params"] == review
            editor.send(id=closing["id"], result={"text": "typed by the user\n"})
            editor.gone()
            assert agent.wait(30) == 0
    kept = [file for file in data_directory().rglob("*") if file.is_file()]
    assert "typed by the user\n" in [file.read_text(encoding="utf-8", errors="replace") for file in kept]


@contextmanager
def proposing(discovered: dict[str, Any], file: Path) -> Generator["subprocess.Popen[str]"]:
    """Start an agent that proposes a content for a file, prints "proposed", and then the decision."""
    url = f"http://127.0.0.1:{discovered['port']}/mcp"
    program = [sys.executable, agent_program.__file__, url, discovered["authToken"], str(file), "new\n"]
    with subprocess.Popen(program, cwd=file.parent, stdout=subprocess.PIPE, text=True, encoding="utf-8") as agent:
        try:
            yield agent
        finally:
            agent.kill()


def test_a_user_who_starts_it_by_hand_is_told_what_it_is_for(workspace: Path) -> None:
    done = subprocess.run(
        [*ISTHMUS, "companion", "--editor", "stdio"],
        cwd=workspace, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode != 0
    assert "docs/reference/editor-port.md" in done.stderr


@contextmanager
def example(folder: Path, *names: str) -> Generator["subprocess.Popen[str]"]:
    """Start the example of the documentation; its terminal is a pipe."""
    process = subprocess.Popen(
        [sys.executable, str(EXAMPLE), *names],
        cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8",
    )  # fmt: skip
    with process:
        try:
            assert read_line(process, 60) == "Agents in this folder can find you now."
            yield process
        finally:
            process.kill()


def _discovered(isolated_folders: IsolatedFolders) -> dict[str, Any]:
    (file,) = (isolated_folders.temporary / "gemini" / "ide").glob("*.json")
    return json.loads(file.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("key", "method"), [("y", "ide/diffAccepted"), ("n", "ide/diffRejected")])
def test_the_example_of_the_documentation_reviews_an_edit(
    workspace: Path, isolated_folders: IsolatedFolders, key: str, method: str
) -> None:
    path = workspace / "a.py"
    path.write_text("old\n", encoding="utf-8")
    with example(workspace, "a.py") as editor, proposing(_discovered(isolated_folders), path) as agent:
        lines = [read_line(editor) for _ in range(7)]
        assert lines[0] == f"an agent proposes for {path}:"
        assert lines[-3:] == ["-old", "+new", "Accept? [y/n]"]
        assert editor.stdin is not None
        print(key, file=editor.stdin, flush=True)
        assert read_line(agent) == "proposed"
        decided = json.loads(read_line(agent, 60))
        assert decided["method"] == method
        assert agent.wait(30) == 0
    eventually(
        lambda: not list((isolated_folders.temporary / "gemini" / "ide").glob("*")), what="the companion has gone"
    )


@pytest.mark.anyio
async def test_the_example_tells_which_files_are_open(workspace: Path, isolated_folders: IsolatedFolders) -> None:
    for name in ("a.py", "b.py"):
        (workspace / name).write_text("", encoding="utf-8")
    with example(workspace, "a.py", "b.py"):
        discovered = _discovered(isolated_folders)
        url = f"http://127.0.0.1:{discovered['port']}/mcp"
        async with attached_agent(url, discovered["authToken"]) as agent:
            context = await agent.sees(path=str(workspace / "b.py"), isActive=True)
            assert [file["path"] for file in context["workspaceState"]["openFiles"]] == [
                str(workspace / "b.py"), str(workspace / "a.py"),
            ]  # fmt: skip


def test_the_example_ends_without_a_traceback(
    workspace: Path, isolated_folders: IsolatedFolders, capfd: pytest.CaptureFixture[str]
) -> None:
    with example(workspace) as editor:
        editor.send_signal(signal.SIGINT)  # as Ctrl-C does
        assert editor.wait(30) == -signal.SIGINT
    eventually(
        lambda: not list((isolated_folders.temporary / "gemini" / "ide").glob("*")), what="the companion has gone"
    )
    assert "Traceback" not in capfd.readouterr().err


def test_the_user_can_answer_the_example_from_another_terminal(
    workspace: Path, isolated_folders: IsolatedFolders
) -> None:
    path = workspace / "a.py"
    path.write_text("old\n", encoding="utf-8")
    with example(workspace, "a.py") as editor, proposing(_discovered(isolated_folders), path) as agent:
        while read_line(editor) != "Accept? [y/n]":
            pass
        assert read_line(agent) == "proposed"
        done = isthmus("ide", "accept", "a.py", folder=workspace)
        assert done.returncode == 0, done.stderr
        assert json.loads(read_line(agent, 60))["method"] == "ide/diffAccepted"
        assert agent.wait(30) == 0
