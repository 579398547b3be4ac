"""Items of a project's files that need the user's consent: each is found, and what was not agreed to is left out."""

from pathlib import Path

import pytest

from isthmus.settings import load_settings
from isthmus.settings.claude_files import read_claude_files
from isthmus.settings.env_files import load_environment
from isthmus.settings.hook_files import read_hooks
from isthmus.settings.sources import read_sources
from isthmus.settings.trust.agreements import Agreement, agreement_path, decided, read_agreement, write_agreement
from isthmus.settings.trust.first_sight import record_first_sight, with_records
from isthmus.settings.trust.forms import GEMINI_KEYS, folder_refusal
from isthmus.settings.trust.items import ItemKind, ProjectItem
from isthmus.settings.trust.reading import project_items
from support.project_files import EVERY_KEY, HOOK, nested, write, write_all


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def named(items: tuple[ProjectItem, ...]) -> list[tuple[str, str, str]]:
    return [(item.kind.value, item.file, item.name) for item in items]


def test_every_key_that_a_trusted_folder_may_set_is_an_item(workspace: Path, home: Path) -> None:
    assert EVERY_KEY.keys() == GEMINI_KEYS.keys()
    for key in GEMINI_KEYS:
        write(workspace, ".gemini/settings.json", nested({key: EVERY_KEY[key]}))
        (item,) = project_items(workspace, home)
        assert (item.kind, item.file) == (GEMINI_KEYS[key], ".gemini/settings.json")


def test_all_files_have_their_items(workspace: Path, home: Path) -> None:
    write_all(workspace)
    found = named(project_items(workspace, home))
    assert [each for each in found if each[0] != "setting"] == [
        ("hook", ".gemini/settings.json", "BeforeAgent"),
        ("further folder", ".gemini/settings.json", "context.includeDirectories"),
        ("MCP server", ".gemini/settings.json", "theirs"),
        ("hook", ".claude/settings.json", "Stop"),
        ("further folder", ".claude/settings.json", "permissions.additionalDirectories"),
        ("hook", ".claude/settings.local.json", "Stop"),
        ("MCP server", ".mcp.json", "more"),
        ("slash command", ".gemini/commands/git/push.toml", "git:push"),
        ("variable", ".env", "OPENAI_API_KEY"),
        ("skill", ".claude/skills", "brew"),
        ("subagent", ".gemini/agents", "helper"),
    ]
    assert len({item.digest for item in project_items(workspace, home)}) == len(found)


def test_the_users_own_files_have_no_items(home: Path) -> None:
    write_all(home)
    assert [item.file for item in project_items(home, home)] == [".claude/settings.local.json", ".mcp.json"]


@pytest.mark.parametrize(
    ("file", "content"),
    [
        (".gemini/settings.json", {"hooks": {"BeforeAgent": [{"hooks": [{**HOOK, "timeout": 5}]}]}}),
        (".gemini/settings.json", {"hooks": {"BeforeAgent": [{"matcher": "x", "hooks": [HOOK]}]}}),
        (".gemini/settings.json", {"hooks": {"AfterAgent": [{"hooks": [HOOK]}]}}),
        (".claude/settings.json", {"hooks": {"Stop": [{"hooks": [{**HOOK, "command": "touch more"}]}]}}),
        (".claude/settings.local.json", {"hooks": {"UserPromptSubmit": [{"hooks": [HOOK]}]}}),
    ],
)
def test_a_hook_that_is_new_or_changed_does_not_run(workspace: Path, home: Path, file: str, content: object) -> None:
    def commands() -> list[tuple[str, str]]:
        files = read_sources(workspace, home, {}, is_trusted=True)
        hooks = read_hooks(files, read_claude_files(files, workspace, home, {})).hooks
        return [(hook.event_name, hook.command) for hook in hooks]

    write(workspace, ".gemini/settings.json", {"hooks": {"BeforeAgent": [{"hooks": [HOOK]}]}})
    write(workspace, ".claude/settings.json", {"hooks": {"Stop": [{"hooks": [HOOK]}]}})
    record_first_sight(workspace, home)
    before = commands()
    assert before == [("BeforeAgent", "touch pwned"), ("Stop", "touch pwned")]
    changed = 0 if file.startswith(".gemini") else 1 if file.endswith("settings.json") else 2
    write(workspace, file, content)
    assert commands() == [each for index, each in enumerate(before) if index != changed]
    (line,) = [line for line in load_settings(workspace, home, {}, is_trusted=True).ignored if "new or changed" in line]
    assert file in line
    record_first_sight(workspace, home)  # is made once: what comes later is not agreed to by looking again
    assert len(commands()) == len(before) - (changed < 2)


def test_an_update_is_left_out_and_the_former_state_does_not_count_again(workspace: Path, home: Path) -> None:
    def turns() -> int | None:
        return load_settings(workspace, home, {}, is_trusted=True).max_model_turns

    def agree(*, is_agreed: bool) -> None:
        items = project_items(workspace, home)
        write_agreement(workspace, decided(read_agreement(workspace), items, {items[0].digest: is_agreed}))

    def set_turns(value: int) -> None:
        write(workspace, ".gemini/settings.json", {"model": {"maxSessionTurns": value}})

    set_turns(7)
    record_first_sight(workspace, home)
    assert turns() == 7
    set_turns(8)
    assert turns() is None
    agree(is_agreed=True)
    assert turns() == 8
    set_turns(7)
    assert turns() is None
    agree(is_agreed=False)
    assert turns() is None
    set_turns(8)
    assert turns() is None


def test_variables_that_are_new_or_changed_are_not_read(workspace: Path, home: Path) -> None:
    def key() -> tuple[str | None, bool]:
        loaded = load_environment({}, home, workspace, lambda _: True)
        return loaded.variables.get("OPENAI_API_KEY"), any("new or changed" in each for each in loaded.problems)

    write(workspace, ".env", "OPENAI_API_KEY=first")
    record_first_sight(workspace, home)
    assert key() == ("first", False)
    write(workspace, ".env", "OPENAI_API_KEY=second")
    assert key() == (None, True)
    write(workspace, ".gemini/.env", "OPENAI_API_KEY=first")
    assert key() == (None, True)


def test_a_folder_is_recorded_when_it_is_first_found_trusted_and_not_before(workspace: Path, home: Path) -> None:
    write_all(workspace)
    assert not with_records(lambda _: False, home)(workspace)
    assert read_agreement(workspace) is None
    assert with_records(lambda _: True, home)(workspace)
    agreement = read_agreement(workspace)
    assert agreement is not None
    assert all(map(agreement.covers, project_items(workspace, home)))
    path = agreement_path(workspace)
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"folder": "/elsewhere", "agreed": ["x"]}', "[" * 100_000])
def test_a_record_that_cannot_be_used_covers_nothing(workspace: Path, home: Path, content: str) -> None:
    write_all(workspace)
    record_first_sight(workspace, home)
    agreement_path(workspace).write_text(content, encoding="utf-8")
    assert read_agreement(workspace) == Agreement()


def test_a_record_that_cannot_be_written_holds_until_the_process_ends(workspace: Path, home: Path) -> None:
    write(workspace, ".gemini/settings.json", {"model": {"maxSessionTurns": 7}})
    place = agreement_path(workspace).parent
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("a file in place of the folder", encoding="utf-8")
    record_first_sight(workspace, home)
    write(workspace, ".gemini/settings.json", {"model": {"maxSessionTurns": 8}})
    assert load_settings(workspace, home, {}, is_trusted=True).max_model_turns is None


@pytest.mark.parametrize("name", ["/", "~", "..", "~/.ssh", "~/.config/x", "link", "~/Library/x", "../.hidden/x"])
def test_folders_that_no_project_may_name_are_refused_and_not_asked_about(home: Path, name: str) -> None:
    workspace = home / "project"
    (home / ".ssh").mkdir()
    write(workspace, ".gemini/settings.json", {"context": {"includeDirectories": [name, "../beside", "inside"]}})
    write(workspace, ".claude/settings.json", {"permissions": {"additionalDirectories": [name]}})
    (workspace / "link").symlink_to(home / ".ssh")
    settings = load_settings(workspace, home, {}, is_trusted=True)
    assert settings.included_folders == ("../beside", "inside")
    assert len([line for line in settings.ignored if "which is not used" in line]) == 2
    (item,) = project_items(workspace, home)
    assert item == ProjectItem(
        ItemKind.FOLDER, ".gemini/settings.json", "context.includeDirectories", ["../beside", str(home / "beside")]
    )
    assert folder_refusal(workspace, home, name) is not None


def test_a_further_folder_that_leads_elsewhere_than_before_is_new(workspace: Path, home: Path, tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    link = tmp_path / "beside"
    link.symlink_to(tmp_path / "first")
    write(workspace, ".gemini/settings.json", {"context": {"includeDirectories": [str(link)]}})
    record_first_sight(workspace, home)
    assert load_settings(workspace, home, {}, is_trusted=True).included_folders == (str(link),)
    link.unlink()
    link.symlink_to(tmp_path / "second")
    assert load_settings(workspace, home, {}, is_trusted=True).included_folders == ()
