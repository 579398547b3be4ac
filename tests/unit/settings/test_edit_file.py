import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from isthmus.encoding.jsonc_edit import set_member
from isthmus.settings.edit_file import SettingsFileError, change_file


def put(text: str) -> str:
    return set_member(text, ["a"], 1)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_that_is_not_there_is_made_with_its_folder_for_its_owner_alone(workspace: Path) -> None:
    path = workspace / ".gemini" / "settings.json"
    assert change_file(path, put)
    assert path.read_text(encoding="utf-8") == '{\n  "a": 1\n}\n'
    assert mode(path) == 0o600
    assert [found.name for found in path.parent.iterdir()] == ["settings.json"]


def test_a_file_keeps_its_mode_and_line_ends_and_is_not_written_without_a_change(workspace: Path) -> None:
    path = workspace / "settings.json"
    path.write_bytes(b'\xef\xbb\xbf{\r\n\t"b": 2\r\n}\r\n')
    path.chmod(0o640)
    assert change_file(path, put)
    assert path.read_bytes() == b'\xef\xbb\xbf{\r\n\t"b": 2,\r\n\t"a": 1\r\n}\r\n'
    assert mode(path) == 0o640
    written = path.stat().st_ino
    assert not change_file(path, put)
    assert path.stat().st_ino == written


def test_a_link_is_written_through(workspace: Path) -> None:
    real = workspace / "dotfiles.json"
    real.write_text("{}", encoding="utf-8")
    (workspace / "settings.json").symlink_to(real)
    change_file(workspace / "settings.json", put)
    assert (workspace / "settings.json").is_symlink()
    assert '"a": 1' in real.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("content", "place"), [(b'{\n  "a" 1\n}', ":2:7: Expecting ':'"), (b'{\n "\xff": 1}', ":2:3: expected UTF-8")]
)
def test_a_file_with_an_error_is_not_touched_and_the_place_is_told(content: bytes, place: str, workspace: Path) -> None:
    path = workspace / "settings.json"
    path.write_bytes(content)
    with pytest.raises(SettingsFileError) as caught:
        change_file(path, put)
    assert str(caught.value).startswith(f"{path}{place}")
    assert path.read_bytes() == content


def test_what_somebody_else_wrote_meanwhile_is_edited_and_not_lost(workspace: Path) -> None:
    path = workspace / "settings.json"
    path.write_text("{}", encoding="utf-8")
    texts: list[str] = []

    def change(text: str) -> str:
        if not texts:
            path.write_text('{"theirs": 1}', encoding="utf-8")
        texts.append(text)
        return put(text)

    change_file(path, change)
    assert texts == ["{}", '{"theirs": 1}']
    assert path.read_text(encoding="utf-8") == '{"theirs": 1, "a": 1}'


def test_a_pipe_is_not_waited_for_and_a_read_only_file_stays(workspace: Path) -> None:
    os.mkfifo(workspace / "pipe.json")
    with pytest.raises(SettingsFileError, match="not a regular file"):
        change_file(workspace / "pipe.json", put)
    path = workspace / "settings.json"
    path.write_text("{}", encoding="utf-8")
    path.chmod(0o400)
    with pytest.raises(SettingsFileError, match="cannot be written"):
        change_file(path, put)
    assert path.read_text(encoding="utf-8") == "{}"


@pytest.mark.slow
def test_changes_that_are_made_at_the_same_time_all_count(workspace: Path) -> None:
    path = workspace / ".gemini" / "settings.json"

    def change(writer: int) -> None:
        for number in range(5):
            change_file(path, partial(set_member, path=[f"{writer}-{number}"], value=number))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(change, range(8)))
    assert len(json.loads(path.read_text(encoding="utf-8"))) == 40
    assert [found.name for found in path.parent.iterdir()] == ["settings.json"]


def test_what_changes_nothing_makes_no_folder(workspace: Path) -> None:
    assert not change_file(workspace / ".gemini" / "settings.json", lambda text: text)
    assert list(workspace.iterdir()) == []
