"""The list of processes, which other users of the machine read, has none of Isthmus's secrets."""

import contextlib
import json
import os
import re
import stat
import subprocess
import time
import webbrowser
from collections.abc import Generator, Iterator
from pathlib import Path

import psutil
import pytest

from isthmus.a2a.token_file import TOKEN_FILE
from isthmus.programs.process.browser import open_browser
from support.isthmus_program import ISTHMUS
from support.waiting import eventually

SCRIPT = "scenarios: [{prompt: '.', replies: [{text: 'You said: {{prompt}}'}]}]"


def command_lines() -> Iterator[tuple[str, str]]:
    """Yield the command line of every process of the machine, and the environments of our own children."""
    ours = {child.pid for child in psutil.Process().children(recursive=True)}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            yield f"arguments of {process.pid}", "\0".join(process.cmdline())
            if process.pid in ours:
                yield f"environment of {process.pid}", json.dumps(process.environ())


@pytest.fixture
def browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in for the user's browser: a program that notes its arguments and ends; return the notes."""
    notes, program = tmp_path / "opened", tmp_path / "browser"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >> {notes}\n', encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("BROWSER", f"{program} %s")
    monkeypatch.setattr(webbrowser, "_tryorder", None)  # or the browser of an earlier test is found
    monkeypatch.setattr(webbrowser, "_browsers", {})
    monkeypatch.setenv("DISPLAY", ":none")
    return notes


@contextlib.contextmanager
def started(tmp_path: Path, *arguments: str) -> Generator["subprocess.Popen[str]"]:
    (script := tmp_path / "script.yaml").write_text(SCRIPT, encoding="utf-8")
    command = [*ISTHMUS, *arguments, "--no-ide", "--data-dir", str(tmp_path / "data"), "-m", f"scripted:{script}"]
    process = subprocess.Popen(
        [*command, "--port", "0"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=60)
        for child in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if child.cmdline()[:2] == ["sleep", "60"]:
                    child.kill()


def test_the_link_of_the_workbench_is_in_no_command_line_and_no_environment(
    tmp_path: Path, browser: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROWSER", f"{_staying(tmp_path)} %s &")
    with started(tmp_path, "web") as process:
        assert process.stdout is not None
        printed = ""
        while (found := re.search(r"http\S+#code=(\S+)", printed)) is None:
            printed += process.stdout.readline()
        eventually(lambda: browser.exists() and browser.read_text("utf-8").endswith("\n"))
        page = Path(browser.read_text("utf-8").strip().removeprefix("file://"))
        assert stat.S_IMODE(page.stat().st_mode) == 0o600
        assert stat.S_IMODE(page.parent.parent.stat().st_mode) == 0o700
        assert f'content="0;url={found[0]}"' in page.read_text("utf-8")
        assert any(str(page) in text for _, text in command_lines())  # the browser is there
        token = (tmp_path / "data" / TOKEN_FILE).read_text("utf-8").strip()
        seen = dict(command_lines())
        assert any("isthmus" in text and "web" in text for text in seen.values())
        for secret in (found[1], token):
            assert [where for where, text in seen.items() if secret in text] == []
        (tmp_path / "end").touch()
    assert not page.exists()


def _staying(folder: Path) -> Path:
    """Return a browser that stays until there is a file "end"."""
    program = folder / "staying-browser"
    lines = ("#!/bin/sh", f'{folder}/browser "$@"', f"until [ -e {folder}/end ]; do sleep 0.1; done")
    program.write_text("\n".join(lines), encoding="utf-8")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize("url", ["javascript:alert(1)", "file:///etc/passwd", "ftp://x", "", "//x", "data:text/html,x"])
def test_only_web_pages_are_opened(url: str, browser: Path) -> None:
    assert not open_browser(url)
    assert not browser.exists()


def test_a_url_ends_nothing_in_the_page_that_leads_to_it(browser: Path) -> None:
    url = "https://x.example/?a=\"><script>alert(1)</script>&b='#c"
    assert open_browser(url)
    eventually(lambda: browser.exists() and browser.read_text("utf-8").endswith("\n"))
    text = Path(browser.read_text("utf-8").strip().removeprefix("file://")).read_text("utf-8")
    assert "<script>" not in text
    assert "&quot;&gt;&lt;script&gt;" in text


def test_pages_of_earlier_runs_are_removed(browser: Path) -> None:
    assert open_browser("https://x.example/")
    eventually(lambda: browser.exists() and browser.read_text("utf-8").endswith("\n"))
    page = Path(browser.read_text("utf-8").strip().removeprefix("file://"))
    before = time.time() - 700
    os.utime(page, (before, before))
    assert open_browser("https://y.example/")
    assert not page.exists()
