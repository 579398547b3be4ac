"""What an agent writes beside a companion that runs as a program: listed, kept and undone on the control channel."""

import asyncio
import os
import signal
import sqlite3
import stat
import subprocess
import time
from pathlib import Path

import pytest

from isthmus.files.locations import data_directory
from support.isthmus_program import companion_program
from support.waiting import eventually_async
from support.written_changes import User, watching_agent

pytestmark = pytest.mark.anyio

OLD = "one\ntwo\nthree\nfour\nfive\n"
NEW = "ONE\ntwo\nthree\nfour\nFIVE\n"


def _stores() -> list[Path]:
    return sorted((data_directory() / "companions" / "written").glob("*"))


async def test_hunks_are_undone_kept_and_taken_back(workspace: Path) -> None:
    file, other = workspace / "a.txt", workspace / "b.txt"
    file.write_text(OLD, encoding="utf-8")
    file.chmod(0o640)
    with companion_program(workspace, "--allow-agent-accept") as companion:
        user = User(companion)
        async with watching_agent(companion):
            file.write_text(NEW, encoding="utf-8")
            other.write_text("created\n", encoding="utf-8")
            assert await user.listed() == {"a.txt": [1], "b.txt": [1]}
            listing = await user.ask("written")
            (turn,) = listing["turns"]
            assert (turn["added"], turn["removed"], turn["working"]) == (3, 2, True)
            assert turn["agents"] == ["Gemini CLI"]
            first, second = await user.hunks(file)
            assert (first["old_lines"], first["new_lines"]) == (["one\n"], ["ONE\n"])
            undone = await user.ask("written_undo", path=str(file), hunks=[first["id"]], state=listing["state"])
            assert undone["undone"] == [str(file)]
            assert file.read_text(encoding="utf-8") == "one\ntwo\nthree\nfour\nFIVE\n"
            assert stat.S_IMODE(file.stat().st_mode) == 0o640
            await user.ask("written_take_back")
            assert file.read_text(encoding="utf-8") == NEW
            await user.ask("written_keep", path=str(file), hunks=[2])
            assert [hunk["id"] for hunk in await user.hunks(file)] == [first["id"]]
            assert "has changed since it was listed" in await user.refusal("written_undo", hunks=[second["id"]])
            assert await user.ask("written_keep", state=listing["state"]) == {"changed": True}
            await user.ask("written_undo")
            assert (file.read_text(encoding="utf-8"), other.exists()) == ("one\ntwo\nthree\nfour\nFIVE\n", False)
            await user.ask("written_keep")
            assert await user.listed() == {}


async def test_what_the_user_changed_elsewhere_stays_and_a_changed_hunk_is_refused(workspace: Path) -> None:
    file = workspace / "a.txt"
    file.write_text(OLD, encoding="utf-8")
    with companion_program(workspace, "--allow-agent-accept") as companion:
        user = User(companion)
        async with watching_agent(companion):
            file.write_text(NEW, encoding="utf-8")
            first, second = await user.hunks(file)
            file.write_text(NEW.replace("three", "mine").replace("FIVE", "my five"), encoding="utf-8")
            await user.ask("written_saved", path=str(file))
            refusal = await user.refusal("written_undo", path=str(file), hunks=[second["id"]])
            assert "You changed this hunk since; undo is off" in refusal
            await user.ask("written_undo", path=str(file), hunks=[first["id"]])
            assert file.read_text(encoding="utf-8") == "one\ntwo\nmine\nfour\nmy five\n"


async def test_a_save_that_was_seen_on_disk_before_it_was_reported_is_the_users(workspace: Path) -> None:
    file = workspace / "a.txt"
    file.write_text(OLD, encoding="utf-8")
    with companion_program(workspace, "--allow-agent-accept") as companion:
        user = User(companion)
        async with watching_agent(companion):
            file.write_text(NEW, encoding="utf-8")
            assert await user.listed() == {"a.txt": [1]}
            await user.ask("written_saved", path=str(file))
            assert await user.listed() == {}


async def test_saving_an_agents_text_again_does_not_make_it_the_users(workspace: Path) -> None:
    file = workspace / "a.txt"
    file.write_text(OLD, encoding="utf-8")
    with companion_program(workspace, "--allow-agent-accept") as companion:
        user = User(companion)
        async with watching_agent(companion):
            file.write_text(NEW, encoding="utf-8")
            assert await user.listed() == {"a.txt": [1]}
            os.utime(file)
            assert await user.listed() == {"a.txt": [1]}
            await user.ask("written_saved", path=str(file))
            assert await user.listed() == {"a.txt": [1]}


@pytest.mark.parametrize("is_killed", [True, False])
async def test_what_was_written_outlives_the_companion(workspace: Path, is_killed: bool) -> None:
    file, late = workspace / "a.txt", workspace / "late.txt"
    file.write_text(OLD, encoding="utf-8")
    with companion_program(workspace, "--allow-agent-accept") as companion:
        async with watching_agent(companion):
            file.write_text(NEW, encoding="utf-8")
            first, _ = await User(companion).hunks(file)
            companion.end(signal.SIGKILL if is_killed else signal.SIGTERM)
    late.write_text("while no companion ran\n", encoding="utf-8")
    with companion_program(workspace, "--allow-agent-accept") as companion:
        user = User(companion)
        assert await eventually_async(user.listed, what="what was written before") == {"a.txt": [1], "late.txt": [1]}
        assert (await user.hunks(file))[0]["id"] == first["id"]
        await user.ask("written_undo")
        assert file.read_text(encoding="utf-8") == OLD
        await user.ask("written_keep")
    assert _stores() == []


async def test_the_store_is_private_and_secrets_are_never_in_it(workspace: Path) -> None:
    (workspace / ".gitignore").write_text("built/\n", encoding="utf-8")
    (workspace / ".geminiignore").write_text("hidden.txt\n", encoding="utf-8")
    names = (".env", "hidden.txt", "id_rsa", "built/x.txt")
    (workspace / "built").mkdir()
    for name in names:
        (workspace / name).write_text("secret-before\n", encoding="utf-8")
    with companion_program(workspace, "--allow-agent-accept") as companion:
        user = User(companion)
        async with watching_agent(companion):
            for name in names:
                (workspace / name).write_text("secret-after-it\n", encoding="utf-8")
            assert await user.listed() == {".env": [1], "hidden.txt": [1], "id_rsa": [1]}
            found = await user.ask("written_file", path=str(workspace / ".env"))
            assert (found["old"], found["new"]) == (None, None)
            assert "never stored" in found["why"]
            assert "never stored" in await user.refusal("written_undo", path=str(workspace / ".env"))
            for path in _stores():
                assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert stat.S_IMODE(_stores()[0].parent.stat().st_mode) == 0o700
            companion.end(signal.SIGKILL)
    stored = _contents()
    assert stored
    assert not any(b"secret" in content for content in stored)


def _contents() -> list[bytes]:
    import zlib

    (path,) = [path for path in _stores() if path.suffix == ".db"]
    connection = sqlite3.connect(path)
    try:
        return [zlib.decompress(data) for (data,) in connection.execute("SELECT data FROM contents")]
    finally:
        connection.close()


async def test_links_are_not_followed(workspace: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("not ours\n", encoding="utf-8")
    file = workspace / "a.txt"
    file.write_text(OLD, encoding="utf-8")
    (workspace / "to-outside").symlink_to(outside)
    (workspace / "folder").symlink_to(tmp_path)
    with companion_program(workspace, "--allow-agent-accept") as companion:
        user = User(companion)
        async with watching_agent(companion):
            outside.write_text("changed\n", encoding="utf-8")
            file.unlink()
            file.symlink_to(outside)
            assert await user.listed() == {"a.txt": [1]}
            assert "link" in await user.refusal("written_undo", path=str(workspace / "a.txt"))
            assert outside.read_text(encoding="utf-8") == "changed\n"


@pytest.mark.extended
async def test_another_branch_in_the_middle_freezes_nothing(workspace: Path) -> None:
    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", *identity, *arguments], cwd=workspace, check=True, capture_output=True)

    git("init", "--initial-branch=main")
    for number in range(600):
        (workspace / f"file{number}.txt").write_text(OLD * 20, encoding="utf-8")
    git("add", ".")
    git("commit", "--message=one")
    git("checkout", "-b", "other")
    for number in range(600):
        (workspace / f"file{number}.txt").write_text(NEW * 20, encoding="utf-8")
    git("commit", "--all", "--message=two")
    git("checkout", "main")
    with companion_program(workspace, "--allow-agent-accept") as companion:
        user = User(companion)
        async with watching_agent(companion):
            git("checkout", "other")
            slowest = 0.0
            for _ in range(20):
                began = time.monotonic()
                await user.ask("questions")  # the event loop answers all the time
                slowest = max(slowest, time.monotonic() - began)
            assert len(await user.listed()) == 600
            await user.ask("written_undo")
            assert (workspace / "file7.txt").read_text(encoding="utf-8") == OLD * 20
            assert slowest < 2


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("a\r\nb\r\nc", "A\r\nb\r\nC", "a\r\nb\r\nC"),
        ("a\nb\nc", "A\nb\nC\n", "a\nb\nC\n"),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
async def test_one_hunk_is_undone_byte_by_byte(
    workspace: Path, old: str, new: str, expected: str, encoding: str
) -> None:
    file = workspace / "a.txt"
    file.write_bytes(("é" + old).encode(encoding))
    with companion_program(workspace, "--allow-agent-accept") as companion:
        user = User(companion)
        async with watching_agent(companion):
            file.write_bytes(("é" + new).encode(encoding))
            await user.hunks(file)
            await user.ask("written_undo", path=str(file), hunks=[1])
            assert file.read_bytes() == ("é" + expected).encode(encoding)
            await user.ask("written_undo", path=str(file))
            assert file.read_bytes() == ("é" + old).encode(encoding)


async def test_renamed_deleted_binary_and_executable_files(workspace: Path) -> None:
    moved, gone, image, script = (workspace / name for name in ("moved.txt", "gone.txt", "image.bin", "run.sh"))
    for path in (moved, gone, script):
        path.write_text(OLD + path.name, encoding="utf-8")
    image.write_bytes(b"\0\1\2")
    with companion_program(workspace, "--allow-agent-accept") as companion:
        user = User(companion)
        async with watching_agent(companion):
            moved.rename(workspace / "there.txt")
            gone.unlink()
            image.write_bytes(b"\0\1\2\3")
            script.chmod(0o755)
            (turn,) = (await user.ask("written"))["turns"]
            files = {Path(file["path"]).name: file for file in turn["files"]}
            assert {name: file["kind"] for name, file in files.items()} == {
                "moved.txt": "deleted",
                "there.txt": "created",
                "gone.txt": "deleted",
                "image.bin": "changed",
                "run.sh": "changed",
            }
            assert files["there.txt"]["renamed_from"] == str(moved)
            assert (files["image.bin"]["text"], files["run.sh"]["new_mode"]) == (False, 0o755)
            await user.ask("written_undo", path=str(workspace / "there.txt"))
            assert (moved.exists(), (workspace / "there.txt").exists()) == (True, False)
            await user.ask("written_undo")
            assert (gone.read_text(encoding="utf-8"), image.read_bytes()) == (OLD + "gone.txt", b"\0\1\2")
            assert not stat.S_IMODE(script.stat().st_mode) & 0o111
            await user.ask("written_take_back")
            assert not gone.exists()
            assert image.read_bytes() == b"\0\1\2\3"


async def test_turns_begin_at_prompts_and_a_later_one_says_what_goes_with_it(workspace: Path) -> None:
    file = workspace / "a.txt"
    file.write_text(OLD, encoding="utf-8")
    with companion_program(workspace, "--allow-agent-accept") as companion:
        user = User(companion)
        async with watching_agent(companion):
            await user.ask("written_turn", agent="Claude Code", title="Shout the first line")
            file.write_text(NEW, encoding="utf-8")
            await user.listed()
            await user.ask("written_turn", agent="Claude Code", title="Even louder")
            file.write_text(NEW.replace("ONE", "ONE!"), encoding="utf-8")
            turns = (await user.ask("written"))["turns"]
            assert [turn["title"] for turn in turns] == ["Shout the first line", "Even louder"]
            assert [(hunk["later"], hunk["number"]) for hunk in await user.hunks(file, 1)] == [([2], 1), ([], 2)]
            await user.ask("written_undo", turn=1, path=str(file), hunks=[1])
            assert file.read_text(encoding="utf-8") == OLD.replace("five", "FIVE")


async def test_a_waiting_front_is_told(workspace: Path) -> None:
    file = workspace / "a.txt"
    file.write_text(OLD, encoding="utf-8")
    with companion_program(workspace, "--allow-agent-accept") as companion:
        user = User(companion)
        async with watching_agent(companion):
            count = (await user.ask("written"))["count"]
            waiting = asyncio.create_task(user.ask("written_wait", after=count, wait=30))
            file.write_text(NEW, encoding="utf-8")
            told = await waiting
            assert (told["files"], told["turns"], told["count"] > count) == (1, 1, True)


async def test_without_permission_an_agent_keeps_nothing(workspace: Path) -> None:
    file = workspace / "a.txt"
    file.write_text(OLD, encoding="utf-8")
    with companion_program(workspace) as companion:
        user = User(companion)
        async with watching_agent(companion):
            file.write_text(NEW, encoding="utf-8")
            assert await user.listed() == {"a.txt": [1]}
            for command in ("written_keep", "written_undo", "written_take_back"):
                assert "refused" in await user.refusal(command)
            assert "refused" in await user.refusal("written_saved", path=str(file))


async def test_an_accepted_review_is_no_change_to_look_at(workspace: Path) -> None:
    file = workspace / "a.txt"
    file.write_text(OLD, encoding="utf-8")
    with companion_program(workspace, "--allow-agent-accept") as companion:
        user = User(companion)
        async with watching_agent(companion) as agent:
            arguments = {"filePath": str(file), "newContent": NEW}
            await agent.request("tools/call", {"name": "openDiff", "arguments": arguments})
            await user.ask("accept", path=str(file))
            file.write_text(NEW, encoding="utf-8")
            assert await user.listed() == {}
            file.write_text(OLD, encoding="utf-8")
            assert await user.listed() == {"a.txt": [1]}


async def test_the_store_goes_with_a_companion_that_leaves_nothing(workspace: Path) -> None:
    file = workspace / "a.txt"
    file.write_text(OLD, encoding="utf-8")
    with companion_program(workspace, "--allow-agent-accept") as companion:
        user = User(companion)
        async with watching_agent(companion):
            assert _stores()
            file.write_text(NEW, encoding="utf-8")
            await user.ask("written_keep")
        await eventually_async(lambda: _has_no_agent(user), what="the agent has left")
        companion.end()
    assert _stores() == []


async def _has_no_agent(user: User) -> bool:
    return not (await user.ask("status"))["agents"]


async def test_nothing_is_recorded_if_the_user_does_not_want_it(workspace: Path) -> None:
    file = workspace / "a.txt"
    file.write_text(OLD, encoding="utf-8")
    with companion_program(workspace, "--allow-agent-accept", "--no-record") as companion:
        user = User(companion)
        async with watching_agent(companion, is_recorded=False):
            file.write_text(NEW, encoding="utf-8")
            listing = await user.ask("written")
            assert (listing["files"], listing["problem"]) == ([], "the companion was started with --no-record")
            assert "--no-record" in await user.refusal("written_undo")
    assert _stores() == []
