"""Images that are pasted at the prompt: the whole program in a terminal, with a model provider that records."""

import base64
import json
import os
import signal
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.images import clipboard_program, gif, image_program, png
from support.isolation import IsolatedFolders
from support.loaded_program import LoadedProgram
from support.pty_program import PtyProgram
from support.session_terminal import PROMPT
from support.waiting import eventually
from support.wire_server import Answer, WireServer

SHOT = png(640, 480, more=12_000)
STAND_IN = r"\[Image 1: PNG, 640x480, 12 kB\]"
CTRL_V = "\x16"


class Provider:
    """A provider's server, and the program in a terminal that talks to it."""

    def __init__(self, server: WireServer, folder: Path, workspace: Path, loaded: LoadedProgram) -> None:
        self._server = server
        self._loaded = loaded
        self._folder = folder
        self._workspace = workspace

    @contextmanager
    def terminal(self, path: Path, model: str = "openai:gpt-4.1", **more: str) -> Generator[PtyProgram]:
        """Start the program with the clipboard programs of a folder."""
        variables = {
            **{name: value for name, value in os.environ.items() if name not in ("WAYLAND_DISPLAY", "WSL_DISTRO_NAME")},
            "TERM": "xterm-256color", "DISPLAY": ":7", "PATH": str(path), "EDITOR": str(path / "editor"),
            "OPENAI_API_KEY": "a-key-of-some-length", "OPENAI_BASE_URL": f"{self._server.base_url}/v1",
            **more, "GEMINI_API_KEY": "a-key-of-some-length", "GOOGLE_GEMINI_BASE_URL": self._server.base_url,
        }  # fmt: skip
        options = ("-m", model, "--no-ide", "--data-dir", str(self._folder / "data"))
        with self._loaded.terminal(*options, folder=self._workspace, environment=variables) as terminal:
            yield terminal.wait_for(PROMPT)

    def content(self, number: int = 1) -> Sequence[Any]:
        """Return the parts of the last user message in the request with this number, from 1."""

        def request() -> Any:
            bodies = [one for one in self._server.requests if one.path.endswith("/chat/completions")]
            assert len(bodies) >= number
            return json.loads(bodies[number - 1].body)

        content: Any = eventually(request, 30)["messages"][-1]["content"]
        return [{"type": "text", "text": content}] if isinstance(content, str) else content


def images_of(content: Sequence[Any]) -> list[bytes]:
    urls = [part["image_url"]["url"] for part in content if part["type"] == "image_url"]
    return [base64.b64decode(url.removeprefix("data:image/png;base64,"), validate=True) for url in urls]


def text_of(content: Sequence[Any]) -> str:
    return "\n".join(part["text"] for part in content if part["type"] == "text")


@pytest.fixture
def provider(tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram) -> Generator[Provider]:
    done = {"choices": [{"index": 0, "delta": {"content": "Answered."}, "finish_reason": "stop"}]}
    body = f"data: {json.dumps({'id': '1', 'object': 'chat.completion.chunk', **done})}\n\ndata: [DONE]\n\n".encode()
    with WireServer(lambda request: Answer(200, {"Content-Type": "text/event-stream"}, (body,))) as server:
        yield Provider(server, tmp_path, workspace, loaded_isthmus)


@pytest.fixture
def shot(tmp_path: Path) -> Path:
    path = tmp_path / "my shot.png"
    path.write_bytes(SHOT)
    return path


@pytest.fixture
def clipboard(tmp_path: Path, shot: Path) -> Path:
    return image_program(tmp_path / "bin", shot)


def test_the_image_in_the_clipboard_is_part_of_the_message(
    provider: Provider, clipboard: Path, isolated_folders: IsolatedFolders
) -> None:
    with provider.terminal(clipboard) as terminal:
        terminal.press(f"what is {CTRL_V}").wait_for(rf"(?m)^\u203a what is {STAND_IN}$")
        terminal.press(" for?\r").wait_for("Answered.").wait_for(PROMPT)
        assert images_of(provider.content()) == [SHOT]
        assert "what is [Image 1: PNG, 640x480, 12 kB] for?" in text_of(provider.content())
        terminal.press("\x1b[A").wait_for(rf"(?m)^\u203a what is {STAND_IN} for\?$")
    settings = isolated_folders.home / ".gemini" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text('{"general": {"vimMode": true}}', "utf-8")
    with provider.terminal(clipboard) as terminal:
        terminal.press("\x1b[A").wait_for(r"(?m)^\u203a what is \[Image: PNG, 640x480, 12 kB\] for\?$")
        terminal.press("\r").wait_for("Answered.").wait_for(PROMPT)
        assert images_of(provider.content(2)) == []
        # In vi's insert mode the key means the same; Backspace removes an image as a whole.
        terminal.press(f"one {CTRL_V}").wait_for(rf"(?m)^\u203a one {STAND_IN}$")
        terminal.press("\x7f").wait_for(r"(?m)^\u203a one$").press("two\r").wait_for(r"(?s)Answered\..*Answered\.")
        assert images_of(provider.content(3)) == []
        assert "one two" in text_of(provider.content(3))


def test_images_come_from_keys_empty_pastes_and_dragged_paths(provider: Provider, shot: Path, clipboard: Path) -> None:
    clipboard_program(clipboard, "editor", "open(sys.argv[-1], 'a').write(' from the editor')")
    escaped = str(shot).replace(" ", "\\ ")
    with provider.terminal(clipboard) as terminal:
        # Enter waits for the image that is still being read.
        terminal.press(f"what is {CTRL_V} for?\r").wait_for("Answered.").wait_for(PROMPT)
        assert images_of(provider.content(1)) == [SHOT]
        assert "what is [Image 1: PNG, 640x480, 12 kB] for?" in text_of(provider.content(1))
        terminal.press(f"see {CTRL_V}\x18\x05").wait_for(rf"see {STAND_IN} from the editor")
        terminal.press("\r").wait_for(r"(?s)Answered\..*Answered\.").wait_for(PROMPT)
        assert images_of(provider.content(2)) == [SHOT]
        terminal.press(f"and \x1b[200~{escaped} \x1b[201~in \x1b[200~{shot.parent}\x1b[201~\r")
        assert images_of(provider.content(3)) == [SHOT]
        assert f"and [Image 1: PNG, 640x480, 12 kB] in {shot.parent}" in text_of(provider.content(3))
        terminal.wait_for(PROMPT).press("\x1b[200~\x1b[201~").wait_for(rf"(?m)^\u203a {STAND_IN}$").press("\x03")
        terminal.wait_for(PROMPT).press(f"/context {CTRL_V}\r")
        terminal.wait_for("Images are sent with messages, not with commands")


def test_a_clipboard_without_an_image_inserts_and_sends_nothing(provider: Provider, tmp_path: Path) -> None:
    text_only = clipboard_program(tmp_path / "text", "xclip", "sys.exit(1)")
    with provider.terminal(text_only) as terminal:
        terminal.press(f"see {CTRL_V}\r").wait_for(r"(?m)^  The clipboard has no image\.").wait_for(r"(?m)^\u203a see$")
        terminal.press("x").wait_until_gone("has no image").wait_for(r"(?m)^\u203a see x$")
        terminal.press("\r").wait_for("Answered.")
        assert images_of(provider.content()) == []


def test_an_image_that_the_model_does_not_take_is_refused(provider: Provider, clipboard: Path, tmp_path: Path) -> None:
    (tmp_path / "moving").write_bytes(gif())
    with provider.terminal(clipboard, "gemini-2.5-flash") as terminal:
        terminal.press(f"see \x1b[200~{tmp_path}/moving\x1b[201~\r").wait_for(
            "the file image-1.gif of .* cannot be read"
        )
        terminal.wait_for("the model does not accept image/gif").wait_for(PROMPT)
        terminal.press("\x1b[A").wait_for(r"(?m)^\u203a see \[Image 1: GIF, 4x6, 1 kB\]$")


def is_gone(program: int) -> bool:
    try:
        return not Path(f"/proc/{program}/cmdline").read_bytes()  # empty when it has ended
    except FileNotFoundError:
        return True


def test_what_reads_the_clipboard_ends_with_the_line_and_with_the_program(provider: Provider, tmp_path: Path) -> None:
    started = tmp_path / "started"
    started.mkdir()
    hanging = clipboard_program(
        tmp_path / "bin", "powershell.exe", f"open(f'{started}/{{os.getpid()}}', 'w').close()\ntime.sleep(600)"
    )

    def running() -> int:
        return eventually(lambda: [int(path.name) for path in started.iterdir() if not is_gone(int(path.name))])[0]

    # This one has ten seconds.
    with provider.terminal(hanging, WSL_DISTRO_NAME="Ubuntu") as terminal:
        terminal.press(CTRL_V).wait_for("reading the clipboard")
        first = running()
        terminal.press("\x03").wait_until_gone("reading the clipboard")
        eventually(lambda: is_gone(first), 5)
        terminal.press("hello\r").wait_for("Answered.").wait_for(PROMPT)
        terminal.press(CTRL_V).wait_for("reading the clipboard")
        second = running()
        terminal.signal(signal.SIGTERM)
        assert terminal.wait_for_exit() == 128 + signal.SIGTERM
        eventually(lambda: is_gone(second))
