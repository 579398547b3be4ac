"""Pasted paths: which texts are one, and which files are taken as images."""

import os
import socket
from pathlib import Path

import pytest

from isthmus.media import MAXIMUM_FILE_BYTES
from isthmus.terminal.prompt import image_paths
from isthmus.terminal.prompt.image_paths import MAXIMUM_CHARACTERS, possible_paths, read_image
from isthmus.terminal.prompt.pasted_images import PastedImageError
from support.images import gif, png

NAMES = (
    "shot.png",
    "my shot.png",
    "it's.png",
    'a "quoted" one.png',
    "back\\slash.png",
    "$(reboot) `x`;&.png",
    "ü\u202fx.png",
)


def read(text: str) -> str | None:
    found = read_image(possible_paths(text))
    return None if found is None else found.facts


def escaped(path: Path) -> str:
    return "".join(f"\\{letter}" if letter in " '\"\\$()`;&" else letter for letter in str(path))


def quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "'\\''") + "'"


@pytest.mark.parametrize("name", NAMES)
def test_a_path_is_read_in_every_form_that_terminals_paste(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(png())
    for text in (str(path), escaped(path), quoted(path), path.as_uri(), f"{quoted(path)} ", f" {path}\n"):
        assert read(text) == "PNG, 2x1, 1 kB", text
    assert read(path.as_uri().replace("file://", "file://localhost")) == "PNG, 2x1, 1 kB"


def test_a_path_in_the_users_own_folder_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "shot.png").write_bytes(png())
    assert read("~/shot.png") == "PNG, 2x1, 1 kB"


def test_the_bytes_decide_and_not_the_name(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_bytes(gif())
    (tmp_path / "page.png").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>", "utf-8")
    (tmp_path / "archive.png").write_bytes(b"PK\3\4" + png())
    assert read(str(tmp_path / "notes.txt")) == "GIF, 4x6, 1 kB"
    assert read(str(tmp_path / "page.png")) is None
    assert read(str(tmp_path / "archive.png")) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "shot.png",
        "./shot.png",
        "~other/shot.png",
        "see /tmp/shot.png",
        "http://example.org/shot.png",
        "file://other.example/shot.png",
        "/tmp/a.png\n/tmp/b.png",
        "/tmp/\x1b[31m.png",
        "/" + "a" * MAXIMUM_CHARACTERS,
    ],
)
def test_other_texts_are_no_path(text: str) -> None:
    assert possible_paths(text) == []


@pytest.mark.parametrize("text", ["/absent.png", "file:///a%00b.png", "/" + "a" * 9000, "/\ud800.png", "'/open", "/"])
def test_a_path_that_cannot_be_read_stays_text(text: str) -> None:
    assert read(text) is None


def test_pipes_devices_sockets_and_folders_are_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # To open a device may have an effect, also where nothing is read then.
    monkeypatch.delattr(image_paths, "read_regular")
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "zero.png").symlink_to("/dev/zero")
    (tmp_path / "loop.png").symlink_to("loop.png")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket.png"))
        assert [read(str(path)) for path in sorted(tmp_path.iterdir())] == [None] * 5


def test_a_file_that_is_too_large_is_named_if_it_looks_like_an_image(tmp_path: Path) -> None:
    for name in ("large.png", "large.log"):
        with (tmp_path / name).open("wb") as file:
            file.truncate(MAXIMUM_FILE_BYTES + 1)
    with pytest.raises(PastedImageError, match="more than 15,000,000 bytes, and its path stays"):
        read(str(tmp_path / "large.png"))
    assert read(str(tmp_path / "large.log")) is None
