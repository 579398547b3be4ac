import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.agent.memory import reading as memory_reading
from isthmus.agent.memory.imports import imports_in, with_imports
from isthmus.agent.memory.instructions import Instructions
from isthmus.agent.memory.memory import Memory
from isthmus.agent.memory.save_memory import HEADING, one_line, with_fact
from isthmus.files.stamps import UNSETTLED_NANOSECONDS

pytestmark = pytest.mark.anyio


class Place:
    """A workspace inside a git repository, and the user's own folder."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home" / ".gemini"
        self.project = folder / "project"
        self.workspace = self.project / "services" / "api"
        for path in (self.home, self.workspace, self.project / ".git"):
            path.mkdir(parents=True)
        self.memory = Memory()

    def write(self, name: str, text: str) -> Path:
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    async def read(self, names: Sequence[str] = ()) -> Instructions:
        return await self.memory.instructions(self.workspace, self.home, names)

    async def shown(self) -> list[str]:
        return [file.shown for file in (await self.read()).files]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path.resolve())


async def test_files_come_from_the_user_the_git_root_down_and_the_folders_below(place: Place) -> None:
    (place.home / "GEMINI.md").write_text("own")
    place.write("GEMINI.md", "root")
    place.write("services/AGENTS.md", "services")
    place.write("services/api/GEMINI.md", "api")
    place.write("services/api/b/GEMINI.md", "below b")
    place.write("services/api/a/deep/GEMINI.md", "below deep")
    place.write("services/other/GEMINI.md", "elsewhere")
    (place.project.parent / "GEMINI.md").write_text("above the repository")
    instructions = await place.read()
    assert [file.text for file in instructions.files] == ["own", "root", "services", "api", "below b", "below deep"]
    assert instructions.files[1].shown == "../../GEMINI.md"
    assert instructions.problems == ()


async def test_instructions_for_claude_are_read_too(place: Place) -> None:
    (place.home / "GEMINI.md").write_text("own")
    (place.home.parent / ".claude").mkdir()
    (place.home.parent / ".claude" / "CLAUDE.md").write_text("own for Claude")
    place.write("CLAUDE.md", "root")
    place.write("services/api/AGENTS.md", "api")
    instructions = await place.read()
    assert [file.text for file in instructions.files] == ["own", "own for Claude", "root", "api"]
    assert [file.text for file in (await place.read(["GEMINI.md"])).files] == ["own"]


async def test_a_folder_of_another_user_has_no_instructions_of_its_neighbours(place: Place) -> None:
    home = place.home.parent / "user"
    for folder in (home, place.home.parent / ".claude"):
        folder.mkdir()
    (place.home.parent / ".claude" / "CLAUDE.md").write_text("of somebody else")
    assert (await place.memory.instructions(place.workspace, home)).files == ()


@pytest.mark.parametrize("claude", ["The rules.\n", "@AGENTS.md\n"])
async def test_the_same_instructions_under_two_names_are_read_once(place: Place, claude: str) -> None:
    place.write("AGENTS.md", "The rules.")
    place.write("CLAUDE.md", claude)
    place.write("services/CLAUDE.md", "@../AGENTS.md and more")
    assert [file.text for file in (await place.read()).files] == [
        "The rules.",
        "<!-- Imported from: ../AGENTS.md -->\nThe rules.\n<!-- End of import from: ../AGENTS.md --> and more",
    ]


async def test_other_users_are_told_nothing_from_above_the_folders_they_may_work_in(place: Place) -> None:
    place.write("GEMINI.md", "the whole repository")
    place.write("services/GEMINI.md", "all services")
    place.write("services/api/GEMINI.md", "api @../../secret.md @../shared.md")
    place.write("secret.md", "a secret")
    place.write("services/shared.md", "shared")
    (place.home / "GEMINI.md").write_text("of the local user")
    for bounds, expected in (
        ((place.workspace,), ["api"]),
        ((place.project / "services", place.workspace), ["all services", "api"]),
        ((place.project / "services", place.project.parent), ["the whole repository", "all services", "api"]),
        ((), ["the whole repository", "all services", "api"]),
    ):
        theirs = await Memory(bounds).instructions(place.workspace, None)
        assert [file.text.split(" <")[0].split(" @")[0] for file in theirs.files] == expected
        assert ("a secret" in theirs.text) is ("the whole repository" in expected)
        assert ("shared\n" in theirs.text) is ("all services" in expected)
        own = await Memory(bounds).instructions(place.workspace, place.home)
        assert [file.text.split(" <")[0].split(" @")[0] for file in own.files][:2] == [
            "of the local user",
            "the whole repository",
        ]


async def test_without_git_nothing_above_the_workspace_is_read(tmp_path: Path) -> None:
    workspace = tmp_path.resolve() / "a" / "b"
    workspace.mkdir(parents=True)
    (workspace.parent / "GEMINI.md").write_text("above")
    (workspace / "GEMINI.md").write_text("here")
    instructions = await Memory().instructions(workspace, None)
    assert [file.text for file in instructions.files] == ["here"]


async def test_ignored_and_fetched_folders_below_are_left_out(place: Place) -> None:
    place.write(".gitignore", "built/\n")
    place.write("services/api/.geminiignore", "closed/\n")
    for folder in ("built", "closed", "node_modules/x", "open"):
        place.write(f"services/api/{folder}/GEMINI.md", folder)
    assert await place.shown() == ["open/GEMINI.md"]


async def test_imports_are_put_in_place_nested_and_relative_to_their_file(place: Place) -> None:
    place.write("GEMINI.md", "Before\n@docs/a.md, and so on.\nAfter")
    place.write("docs/a.md", "A and @./sub/b.md")
    place.write("docs/sub/b.md", "B")
    text = (await place.read()).files[0].text
    assert text == (
        "Before\n<!-- Imported from: docs/a.md -->\nA and <!-- Imported from: ./sub/b.md -->\nB\n"
        "<!-- End of import from: ./sub/b.md -->\n<!-- End of import from: docs/a.md -->, and so on.\nAfter"
    )


async def test_a_file_that_holds_secrets_is_not_imported_and_that_is_said(place: Place) -> None:
    place.write("GEMINI.md", "@./.env and @docs/link.md")
    place.write(".env", "KEY=hunter2")
    place.write("docs/a.md", "A")
    (place.project / "docs/link.md").symlink_to(place.project / ".env")
    instructions = await place.read()
    assert "hunter2" not in instructions.text
    assert sum("may hold secrets and is not imported" in problem for problem in instructions.problems) == 2


async def test_a_cycle_of_imports_ends(place: Place) -> None:
    place.write("GEMINI.md", "@a.md")
    place.write("a.md", "A @b.md")
    place.write("b.md", "B @a.md @GEMINI.md")
    instructions = await place.read()
    assert instructions.files[0].text.count("Imported from: a.md") == 1
    assert any("in turn" in problem for problem in instructions.problems)


@pytest.mark.slow
async def test_imports_that_multiply_stay_within_the_limits(place: Place) -> None:
    for level in range(8):
        place.write(f"l{level}.md", f"@./l{level + 1}.md " * 50)
    place.write("l8.md", "x" * 1000)
    place.write("GEMINI.md", "@./l0.md")
    instructions = await place.read()
    assert len(instructions.text) < 2 * memory_reading.MAXIMUM_TOTAL_CHARACTERS
    assert instructions.problems


@pytest.mark.slow
async def test_very_many_imports_of_nothing_are_capped_and_that_is_said(place: Place) -> None:
    place.write("a.md", "AAA")
    place.write("GEMINI.md", "@./a.md " + " ".join(f"@./none{number}.md" for number in range(3000)))
    instructions = await place.read()
    assert "AAA" in instructions.text
    assert f"only the first {memory_reading.MAXIMUM_LOOKUPS} paths" in instructions.text
    assert len(instructions.problems) == memory_reading.MAXIMUM_PROBLEMS + 1
    assert "more notes of this kind" in instructions.problems[-1]


@pytest.mark.parametrize(("written", "at_most"), [("./a.md" + ")." * 50_000, 0), ("./a.md)]}.", 5)])
def test_a_path_is_not_looked_for_with_each_length_of_a_long_word(written: str, at_most: int) -> None:
    looked_for: list[str] = []

    def locate(name: str, folder: Path) -> Path | None:
        looked_for.append(name)
        return None

    found = with_imports(f"@{written}", Path("/p/GEMINI.md"), locate, lambda path: None)
    assert found.text == f"@{written}"
    assert len(looked_for) == at_most
    assert len(found.problems[0]) < 2000


async def test_nothing_outside_the_project_is_imported_or_linked(place: Place) -> None:
    secret = place.project.parent / "secret.md"
    secret.write_text("SECRET")
    token = place.home / "mcp-oauth-tokens.json"
    token.write_text("SECRET TOKEN")
    place.write(
        "GEMINI.md", f"@../secret.md @{secret} @docs/link.md @{token} @{place.home}/../.gemini/mcp-oauth-tokens.json"
    )
    (place.project / "docs").mkdir()
    (place.project / "docs/link.md").symlink_to(secret)
    (place.workspace / "AGENTS.md").symlink_to(secret)
    (place.workspace / "GEMINI.md").symlink_to(token)
    instructions = await place.read()
    assert "SECRET" not in instructions.text
    assert sum("leads out" in problem for problem in instructions.problems) == 2


async def test_what_geminiignore_closes_is_not_imported(place: Place) -> None:
    place.write(".geminiignore", "private.md\n")
    place.write("private.md", "PRIVATE")
    place.write("GEMINI.md", "@./private.md")
    instructions = await place.read()
    assert "PRIVATE" not in instructions.text
    assert instructions.problems


async def test_the_users_markdown_can_be_imported_from_a_project(place: Place) -> None:
    (place.home / "style.md").write_text("my style")
    place.write("GEMINI.md", f"@{place.home}/style.md")
    assert "my style" in (await place.read()).text


async def test_a_link_inside_the_project_is_followed_and_read_once(place: Place) -> None:
    place.write("GEMINI.md", "the same")
    (place.project / "AGENTS.md").symlink_to("GEMINI.md")
    assert (await place.read()).text.count("the same") == 1


async def test_code_mentions_and_addresses_are_no_imports() -> None:
    text = (
        "mail a@b.md and `@code.md` and ``@ code.md``\n```\n@fenced.md\n```\n\n    @indented.md\n\n"
        "- item\n    @item.md\n~~~py\n@decorated.md\n~~~\n(@real.md)\n"
    )
    assert [written for _, _, written in imports_in(text)] == ["item.md", "real.md)"]


@pytest.mark.parametrize("content", [b"\x89PNG\r\n\x1a\n\0\0", b"x" * (memory_reading.MAXIMUM_FILE_BYTES + 1)])
async def test_what_is_no_text_or_too_large_is_left_out_and_said(place: Place, content: bytes) -> None:
    place.write("GEMINI.md", "").write_bytes(content)
    instructions = await place.read()
    assert instructions.files == ()
    assert "left out" in instructions.text


async def test_a_pipe_in_place_of_a_file_is_not_waited_for(place: Place) -> None:
    os.mkfifo(place.workspace / "GEMINI.md")
    place.write("AGENTS.md", "here")
    instructions = await place.read()
    assert [file.text for file in instructions.files] == ["here"]
    assert instructions.problems


async def test_many_folders_and_files_are_capped_and_that_is_said(place: Place) -> None:
    for number in range(memory_reading.MAXIMUM_FOLDERS + 50):
        place.write(f"services/api/f{number:03}/GEMINI.md", str(number))
    instructions = await place.read()
    assert len(instructions.files) == memory_reading.MAXIMUM_FILES
    assert "only the first" in instructions.text


async def test_too_much_text_is_cut_and_that_is_said(place: Place) -> None:
    place.write("GEMINI.md", "a" * (memory_reading.MAXIMUM_TOTAL_CHARACTERS - 10))
    place.write("services/GEMINI.md", "b" * 100)
    instructions = await place.read()
    assert instructions.files[1].text == "b" * 10
    assert "../GEMINI.md is cut" in instructions.text


@pytest.mark.parametrize("name", ["../secret.md", "/etc/passwd", "..", "a/b.md"])
async def test_a_name_with_folders_is_refused(place: Place, name: str) -> None:
    (place.project / "services" / "secret.md").write_text("SECRET")
    instructions = await place.read([name])
    assert instructions.files == ()
    assert name in instructions.text


async def test_what_did_not_change_is_not_read_again(place: Place) -> None:
    place.write("GEMINI.md", "one")
    place.memory = Memory(clock=lambda: time.time_ns() + 10 * UNSETTLED_NANOSECONDS)
    first = await place.read()
    assert await place.read() is first


async def test_what_may_have_changed_in_the_moment_of_reading_is_read_again(place: Place) -> None:
    newest = place.write("GEMINI.md", "one").stat().st_ctime_ns
    place.memory = Memory(clock=lambda: newest)
    first = await place.read()
    assert await place.read() is not first


async def test_every_change_is_seen(place: Place) -> None:
    place.write("GEMINI.md", "@./a.md")
    seen = [(await place.read()).text]
    place.write("a.md", "a1")
    seen.append((await place.read()).text)
    place.write("a.md", "a2")
    seen.append((await place.read()).text)
    place.write("services/api/new/GEMINI.md", "new")
    seen.append((await place.read()).text)
    place.write("services/api/.gitignore", "new/\n")
    seen.append((await place.read()).text)
    (place.project / "GEMINI.md").unlink()
    seen.append((await place.read()).text)
    assert len(set(seen[:4])) == 4
    assert seen[4] == seen[2]
    assert seen[5] == ""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", f"{HEADING}\n- x\n"),
        ("# A\n", f"# A\n\n{HEADING}\n- x\n"),
        ("# A", f"# A\n\n{HEADING}\n- x\n"),
        (f"{HEADING}\n- a\n", f"{HEADING}\n- a\n- x\n"),
        (f"{HEADING}\n- a", f"{HEADING}\n- a\n- x\n"),
        (f"a\n{HEADING}\n\n- a\n\n## B\nb\n", f"a\n{HEADING}\n\n- a\n- x\n\n## B\nb\n"),
        (f"a\r\n{HEADING}\r\n- a\r\n\r\n## B\r\nb\r\n", f"a\r\n{HEADING}\r\n- a\r\n- x\r\n\r\n## B\r\nb\r\n"),
        (f"{HEADING}\n## B\n", f"{HEADING}\n- x\n## B\n"),
    ],
)
def test_a_fact_goes_under_its_heading(before: str, after: str) -> None:
    assert with_fact(before, "x") == after


@given(st.text(alphabet="#ab \n-", max_size=60), st.booleans(), st.booleans())
def test_adding_keeps_every_line_that_was_there(text: str, has_heading: bool, is_crlf: bool) -> None:
    before = f"{text}\n{HEADING}\n{text}" if has_heading else text
    before = before.replace("\n", "\r\n") if is_crlf else before
    after = with_fact(before, "the fact")
    lines = after.splitlines()
    assert lines.count("- the fact") == 1
    kept = [line for line in before.splitlines() if line.strip()]
    left = iter(lines)
    assert all(line in left for line in kept)


def test_a_fact_is_one_line() -> None:
    assert one_line("- - a\n\n  b ") == "a b"
