"""The clipboard's image: which program reads it, and what becomes of its answer, however bad."""

import base64
import os
import time
from pathlib import Path

import pytest

from isthmus.media import MAXIMUM_FILE_BYTES
from isthmus.terminal.prompt.clipboard_image import NO_IMAGE, ClipboardReader, find_reader, read_clipboard
from isthmus.terminal.prompt.pasted_images import PastedImageError
from support.images import clipboard_program, gif, image_program, png
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio
X11 = {"DISPLAY": ":7"}
WAYLAND = {"WAYLAND_DISPLAY": "wayland-0"}
WSL = {"WSL_DISTRO_NAME": "Ubuntu"}


def reader(folder: Path, seconds: float = 20) -> ClipboardReader:
    return ClipboardReader(find_reader({**X11, "PATH": str(folder)}, "linux").commands, seconds=seconds)


@pytest.mark.parametrize(
    ("environment", "platform", "installed", "expected"),
    [
        (X11, "linux", ("xclip", "wl-paste"), "xclip"),
        (WAYLAND, "linux", ("xclip", "wl-paste"), "wl-paste"),
        ({**WAYLAND, **X11}, "linux", ("xclip", "wl-paste"), "wl-paste"),
        ({**WAYLAND, **X11}, "linux", ("xclip",), "xclip"),
        ({**WSL, **X11}, "linux", ("powershell.exe", "xclip"), "powershell.exe"),
        ({}, "darwin", ("pngpaste", "osascript"), "pngpaste"),
        ({}, "darwin", ("osascript",), "osascript"),
    ],
)
def test_the_program_that_is_installed_is_used(
    environment: dict[str, str], platform: str, installed: tuple[str, ...], expected: str, tmp_path: Path
) -> None:
    for name in installed:
        clipboard_program(tmp_path, name, "")
    assert find_reader({**environment, "PATH": str(tmp_path)}, platform).name == expected


@pytest.mark.parametrize(
    ("environment", "platform", "advice"),
    [
        (X11, "linux", "install xclip"),
        (WAYLAND, "linux", "install wl-paste"),
        (WSL, "linux", r"powershell\.exe is not on PATH"),
        ({}, "linux", "no clipboard here"),
        ({}, "darwin", "brew install pngpaste"),
    ],
)
def test_without_a_program_the_user_learns_what_to_install(
    environment: dict[str, str], platform: str, advice: str, tmp_path: Path
) -> None:
    with pytest.raises(PastedImageError, match=advice):
        find_reader({**environment, "PATH": str(tmp_path)}, platform)
    with pytest.raises(PastedImageError, match=advice):
        find_reader(environment, platform)


def test_no_program_of_the_working_folder_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clipboard_program(tmp_path, "xclip", "")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PastedImageError, match="install xclip"):
        find_reader({**X11, "PATH": f".{os.pathsep}{os.pathsep}bin"}, "linux")


async def test_the_image_in_the_clipboard_is_read(tmp_path: Path) -> None:
    (tmp_path / "shot").write_bytes(png(640, 480))
    found = await read_clipboard(reader(image_program(tmp_path / "bin", tmp_path / "shot")))
    assert (found.facts, found.data) == ("PNG, 640x480, 1 kB", png(640, 480))


async def test_an_image_of_another_type_is_asked_for_next(tmp_path: Path) -> None:
    body = f"sys.exit(1) if 'image/gif' not in sys.argv else sys.stdout.buffer.write({gif()!r})"
    assert (await read_clipboard(reader(clipboard_program(tmp_path, "xclip", body)))).media_type == "image/gif"


@pytest.mark.parametrize(
    "body",
    [
        "print('only text', file=sys.stderr); sys.exit(1)",
        "print('text in spite of the type')",
        f"sys.stdout.buffer.write({png()!r}); sys.exit(1)",
        "",
    ],
)
async def test_a_clipboard_without_an_image_is_said_to_have_none(body: str, tmp_path: Path) -> None:
    with pytest.raises(PastedImageError) as caught:
        await read_clipboard(reader(clipboard_program(tmp_path, "xclip", body)))
    assert str(caught.value) == NO_IMAGE


async def test_a_program_that_cannot_be_run_gives_no_image(tmp_path: Path) -> None:
    with pytest.raises(PastedImageError, match="has no image"):
        await read_clipboard(ClipboardReader([[str(tmp_path / "absent")]]))


async def test_a_program_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    body = f"""
child = subprocess.Popen([sys.executable, "-ISc", "import time; time.sleep(600)"])
with open({str(tmp_path / "child")!r}, "w") as file:
    file.write(str(child.pid))
time.sleep(600)"""
    began = time.monotonic()
    with pytest.raises(PastedImageError, match="xclip did not end within 1 s"):
        await read_clipboard(reader(clipboard_program(tmp_path / "bin", "xclip", body), seconds=1))
    assert time.monotonic() - began < 20
    child = Path("/proc") / (tmp_path / "child").read_text("utf-8") / "cmdline"
    await eventually_async(lambda: not child.exists() or not child.read_bytes(), what="the end of the child")


async def test_a_program_that_waits_for_input_gets_its_end(tmp_path: Path) -> None:
    with pytest.raises(PastedImageError, match="has no image"):
        await read_clipboard(reader(clipboard_program(tmp_path, "xclip", "sys.stdin.read()")))


async def test_a_flood_is_not_read_to_its_end(tmp_path: Path) -> None:
    body = f"sys.stdout.buffer.write({png()!r})\nwhile True: sys.stdout.buffer.write(bytes(65536))"
    with pytest.raises(PastedImageError, match=f"more than {MAXIMUM_FILE_BYTES:,} bytes"):
        await read_clipboard(reader(clipboard_program(tmp_path, "xclip", body)))


@pytest.mark.parametrize(
    ("name", "environment", "platform", "output"),
    [
        ("powershell.exe", WSL, "linux", base64.b64encode(png()) + b"\r\n"),
        ("osascript", {}, "darwin", f"\u00abdata PNGf{png().hex().upper()}\u00bb\n".encode()),
    ],
)
async def test_output_in_the_form_of_the_system_is_decoded(
    name: str, environment: dict[str, str], platform: str, output: bytes, tmp_path: Path
) -> None:
    clipboard_program(tmp_path, name, f"sys.stdout.buffer.write({output!r})")
    found = find_reader({**environment, "PATH": str(tmp_path)}, platform)
    assert (await read_clipboard(found)).data == png()
    clipboard_program(tmp_path, name, "print('something else')")
    with pytest.raises(PastedImageError, match="has no image"):
        await read_clipboard(found)
