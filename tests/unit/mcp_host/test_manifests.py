import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from isthmus.mcp_host.catalogue.listing import ListedTool, Listing
from isthmus.mcp_host.catalogue.manifests import MAXIMUM_BYTES, MAXIMUM_FILES, Manifest, Manifests
from isthmus.mcp_host.config.server_config import HttpEndpoint, HttpKind, Origin, ServerConfig, StdioEndpoint
from isthmus.mcp_host.connection.transport_probe import TransportChoice
from isthmus.tools.port.server_contents import PromptArgument, ServerPrompt, ServerResource

WORKSPACE = Path("/w")
TOOL = ListedTool("ok", "Works.", {"type": "object", "properties": {"x": {"type": ["string", "null"]}}}, True)
MANIFEST = Manifest(
    Listing(
        (TOOL,),
        (ServerPrompt("s", "poem", "A poem", (PromptArgument("title", is_required=True),)),),
        (ServerResource("s", "file:///x", media_type="text/plain", is_template=True),),
        "Be kind.",
        "server 1.0",
        ("tools[1]: expected an object",),
    ),
    TransportChoice(HttpKind.SSE, is_modern=True, discovered={"supportedVersions": ["2026-07-28"]}),
)


def config(**changes: str) -> ServerConfig:
    endpoint = StdioEndpoint("program", ("--token", changes.get("token", "sesame-1")), {"A": "b"}, WORKSPACE)
    return ServerConfig(changes.get("name", "s"), Origin.USER, endpoint)


def the_file(folder: Path) -> Path:
    (file,) = folder.glob("*.json")
    return file


def test_a_manifest_is_read_as_it_was_written(tmp_path: Path) -> None:
    Manifests(tmp_path / "cache").store(config(), WORKSPACE, MANIFEST)
    assert Manifests(tmp_path / "cache").load(config(), WORKSPACE) == MANIFEST


@pytest.mark.parametrize(
    ("other", "workspace"),
    [
        (config(name="t"), WORKSPACE),
        (config(token="sesame-2"), WORKSPACE),
        (config(), Path("/v")),
        (replace(config(), endpoint=HttpEndpoint("http://s", HttpKind.PROBE, {})), WORKSPACE),
    ],
)
def test_a_manifest_is_for_one_configuration_in_one_workspace(
    tmp_path: Path, other: ServerConfig, workspace: Path
) -> None:
    manifests = Manifests(tmp_path)
    manifests.store(config(), WORKSPACE, MANIFEST)
    assert manifests.load(other, workspace) is None
    manifests.store(other, workspace, replace(MANIFEST, is_held=True))
    assert manifests.load(config(), WORKSPACE) == MANIFEST


def test_which_tools_are_included_does_not_matter_to_what_is_kept(tmp_path: Path) -> None:
    manifests = Manifests(tmp_path)
    manifests.store(config(), WORKSPACE, MANIFEST)
    assert manifests.load(replace(config(), include_tools=("a",), exclude_tools=("b",)), WORKSPACE) == MANIFEST


def test_nobody_else_can_read_what_is_kept_and_it_holds_no_configured_value(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    Manifests(folder).store(config(), WORKSPACE, MANIFEST)
    assert folder.stat().st_mode & 0o777 == 0o700
    for file in folder.iterdir():
        assert file.stat().st_mode & 0o777 == 0o600
        assert b"sesame" not in file.read_bytes()
        assert "sesame" not in file.name


def test_a_listing_that_repeats_a_secret_is_not_kept_and_takes_away_what_was(tmp_path: Path) -> None:
    manifests = Manifests(tmp_path)
    manifests.store(config(), WORKSPACE, MANIFEST)
    told = replace(MANIFEST, listing=replace(MANIFEST.listing, instructions="You are logged in with sesame-1"))
    manifests.store(config(), WORKSPACE, told)
    assert manifests.load(config(), WORKSPACE) is None
    assert not list(tmp_path.glob("*.json"))


def test_one_that_is_too_large_is_not_kept(tmp_path: Path) -> None:
    large = replace(MANIFEST, listing=replace(MANIFEST.listing, instructions="x" * MAXIMUM_BYTES))
    Manifests(tmp_path).store(config(), WORKSPACE, large)
    assert Manifests(tmp_path).load(config(), WORKSPACE) is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff",
        b"[]",
        b"[" * 100_000,
        b'{"form": 1}',
        b'{"form": 1, "manifest": {"listing": {"tools": [{"name": 3}]}, "way": {}}}',
        json.dumps({"form": 2, "manifest": {"listing": {}, "way": {}}}).encode(),
        b" " * (MAXIMUM_BYTES + 1),
    ],
)
def test_a_file_that_is_none_is_passed_over_and_replaced(tmp_path: Path, content: bytes) -> None:
    manifests = Manifests(tmp_path)
    manifests.store(config(), WORKSPACE, MANIFEST)
    the_file(tmp_path).write_bytes(content)
    assert manifests.load(config(), WORKSPACE) is None
    manifests.store(config(), WORKSPACE, MANIFEST)
    assert manifests.load(config(), WORKSPACE) == MANIFEST


def test_a_folder_that_cannot_be_written_fails_nothing(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("no folder")
    manifests = Manifests(file / "cache")
    manifests.store(config(), WORKSPACE, MANIFEST)
    assert manifests.load(config(), WORKSPACE) is None


@pytest.mark.slow
def test_of_many_those_that_were_used_last_are_kept(tmp_path: Path) -> None:
    manifests = Manifests(tmp_path)
    for number in range(MAXIMUM_FILES + 5):
        manifests.store(config(name=f"s{number}"), WORKSPACE, MANIFEST)
        newest = max(tmp_path.glob("*.json"), key=lambda file: file.stat().st_mtime_ns)
        os.utime(newest, (number, number))
        if number == MAXIMUM_FILES - 1:
            assert manifests.load(config(name="s0"), WORKSPACE) == MANIFEST  # used: it is the newest now
    kept = [number for number in range(MAXIMUM_FILES + 5) if manifests.load(config(name=f"s{number}"), WORKSPACE)]
    assert kept == [0, *range(6, MAXIMUM_FILES + 5)]


@pytest.mark.parametrize("key", [b"", b"short", b"x" * 100])
def test_a_key_that_is_none_is_made_anew(tmp_path: Path, key: bytes) -> None:
    manifests = Manifests(tmp_path)
    (tmp_path / "key").write_bytes(key)
    manifests.store(config(), WORKSPACE, MANIFEST)
    assert manifests.load(config(), WORKSPACE) == MANIFEST


def program(folder: Path, text: str) -> list[str]:
    """Return the command of a process that runs `text` with `folder` and the names of this module."""
    start = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r})\n"
    names = "from unit.mcp_host.test_manifests import *\nfolder = Path(sys.argv[1])\n"
    return [sys.executable, "-c", f"{start}{names}{text}", str(folder)]


def the_program(folder: Path, text: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(program(folder, text), check=False, capture_output=True, encoding="utf-8", timeout=60)


KILLED = """
import signal
from isthmus.files import atomic as files
files.os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
Manifests(folder).store(config(), WORKSPACE, replace(MANIFEST, is_held=True))
"""


@pytest.mark.slow
def test_a_killed_writers_leftovers_are_removed_and_what_was_kept_stays(tmp_path: Path) -> None:
    manifests = Manifests(tmp_path)
    manifests.store(config(), WORKSPACE, MANIFEST)
    assert the_program(tmp_path, KILLED).returncode == -9
    (left,) = tmp_path.glob(".isthmus-*.tmp")
    assert manifests.load(config(), WORKSPACE) == MANIFEST
    manifests.store(config(), WORKSPACE, MANIFEST)
    assert left.exists()  # its writer may still be running
    os.utime(left, (1000, 1000))
    manifests.store(config(), WORKSPACE, MANIFEST)
    assert sorted(file.suffix for file in tmp_path.iterdir()) == ["", ".json"]
    assert manifests.load(config(), WORKSPACE) == MANIFEST


FULL = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
Manifests(folder).store(config(), WORKSPACE, replace(MANIFEST, is_held=True))
Manifests(folder).store(config(name="t"), WORKSPACE, MANIFEST)
assert Manifests(folder).load(config(), WORKSPACE) == MANIFEST
assert Manifests(folder).load(config(name="t"), WORKSPACE) is None
"""


@pytest.mark.slow
def test_where_no_more_can_be_written_what_was_kept_stays_and_nothing_is_left(tmp_path: Path) -> None:
    Manifests(tmp_path).store(config(), WORKSPACE, MANIFEST)
    ended = the_program(tmp_path, FULL)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert sorted(file.suffix for file in tmp_path.iterdir()) == ["", ".json"]


def test_a_cache_in_whose_place_a_file_is_or_that_is_read_only_fails_nothing(tmp_path: Path) -> None:
    file, closed = tmp_path / "file", tmp_path / "closed"
    file.write_text("no folder")
    closed.mkdir(mode=0o500)
    for folder in (file, closed, Path("/proc/isthmus")):  # no process can make a folder there, not even the superuser
        manifests = Manifests(folder)
        manifests.store(config(), WORKSPACE, MANIFEST)
        assert manifests.load(config(), WORKSPACE) in ((None, MANIFEST) if folder == closed else (None,))
    assert file.read_text() == "no folder"


RACING = """
print("ready", flush=True)
number = int(input())
own = config(name=f"own-{number}")
for _ in range(20):
    Manifests(folder).store(config(), WORKSPACE, MANIFEST)
    Manifests(folder).store(own, WORKSPACE, MANIFEST)
    assert Manifests(folder).load(config(), WORKSPACE) == MANIFEST
    assert Manifests(folder).load(own, WORKSPACE) == MANIFEST
"""


@pytest.mark.slow
def test_of_processes_that_begin_the_cache_together_each_finds_what_it_kept(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    racers = [racer(folder) for _ in range(3)]
    for process in racers:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for number, process in enumerate(racers):
        assert process.stdin is not None
        process.stdin.write(f"{number}\n")
        process.stdin.flush()
    assert [(*process.communicate(timeout=60), process.returncode) for process in racers] == [("", "", 0)] * 3
    assert sum(file.suffix == ".json" for file in folder.iterdir()) == 1 + 3
    assert not list(folder.glob(".isthmus-*"))


def racer(folder: Path) -> "subprocess.Popen[str]":
    pipe = subprocess.PIPE
    return subprocess.Popen(program(folder, RACING), stdin=pipe, stdout=pipe, stderr=pipe, encoding="utf-8")
