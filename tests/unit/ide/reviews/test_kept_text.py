"""Texts that are kept for the user: their folder, their owner, and their number."""

import os
import stat
from pathlib import Path

import pytest

from isthmus.ide.reviews.kept_text import KeptText, KeptTexts
from isthmus.ide.reviews.review import DiffReview


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data" / "kept"


def _review(path: str = "/project/src/main.py", title: str = "Gemini CLI") -> DiffReview:
    return DiffReview("1", path, "proposed", title=title)


def test_a_text_is_kept_character_for_character_for_its_owner_alone(folder: Path) -> None:
    text = "\ufeffone\r\ntwo 😀"
    before = os.umask(0)
    try:
        kept = KeptTexts(folder).keep(_review(), text)
    finally:
        os.umask(before)
    path = Path(kept.kept_at)
    assert path.read_bytes() == text.encode()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_the_name_says_when_whose_and_of_which_file(folder: Path) -> None:
    kept = KeptTexts(folder).keep(_review(), "text")
    name = Path(kept.kept_at).name
    assert name.endswith("-Gemini-CLI-main.py")
    assert name[:8].isdigit()
    assert "/project/src/main.py" in str(kept)
    assert kept.kept_at in str(kept)


@pytest.mark.parametrize(
    "path", ["/a/" + "ä" * 120 + ".py", "/a/" + os.fsdecode(b"caf\xe9.txt"), "/a/new\nline.py"], ids=ascii
)
def test_names_of_any_length_and_any_bytes_can_be_kept(folder: Path, path: str) -> None:
    kept = KeptTexts(folder).keep(_review(path, "../../x" * 30), "text")
    assert Path(kept.kept_at).parent == folder
    assert Path(kept.kept_at).suffix == Path(path).suffix
    assert Path(kept.kept_at).read_text(encoding="utf-8") == "text"


def test_the_same_file_may_be_kept_several_times_in_a_second(folder: Path) -> None:
    texts = KeptTexts(folder)
    assert len({texts.keep(_review(), str(number)).kept_at for number in range(5)}) == 5
    assert len(texts.paths()) == 5


def _age(path: str, seconds: int) -> None:
    os.utime(path, (1_000_000_000 - seconds, 1_000_000_000 - seconds))


def test_the_oldest_go_when_there_are_too_many_and_it_is_said(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    texts = KeptTexts(folder, maximum_files=3)
    paths = [texts.keep(_review(), str(number)).kept_at for number in range(3)]
    for seconds, path in enumerate(reversed(paths)):
        _age(path, seconds)
    assert caplog.records == []
    new = texts.keep(_review(), "new").kept_at
    assert texts.paths() == [new, paths[2], paths[1]]
    assert "1 of the oldest" in caplog.text


def test_the_oldest_go_when_they_are_too_large_together_but_never_the_new_one(folder: Path) -> None:
    texts = KeptTexts(folder, maximum_bytes=100)
    old = texts.keep(_review(), "x" * 60).kept_at
    _age(old, 0)
    large = texts.keep(_review(), "x" * 101).kept_at
    assert texts.paths() == [large]


def test_a_folder_that_cannot_be_written_to_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(OSError, match="file"):
        KeptTexts(tmp_path / "file" / "kept").keep(_review(), "text")


def test_nothing_kept_is_an_empty_list(folder: Path) -> None:
    assert KeptTexts(folder).paths() == []


def test_where_a_text_is_kept_can_be_written_to_any_log_or_screen() -> None:
    told = str(KeptText("/project/caf\udce9.py", "/kept/\ud800", "An agent"))
    assert "/project/caf\\xe9.py" in told
    assert told.isprintable()
    assert told.encode()
