"""Permission questions of Claude Code as a user sees them: all of the input, and no text of it that passes for ours."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.errors import DecodeError
from isthmus.ide.claude.permissions import IN_TERMINAL, MAXIMUM_CHARACTERS, read_permission, write_permission
from isthmus.ide.permissions import PermissionAnswer, PermissionAsked


def _message(tool: str, given: object, **more: object) -> dict[str, Any]:
    return {"hook_event_name": "PermissionRequest", "tool_name": tool, "tool_input": given, "cwd": "/work", **more}


def _asked(tool: str, given: object, **more: object) -> PermissionAsked:
    asked = read_permission(_message(tool, given, **more))
    assert asked is not None
    return asked


def test_a_command_is_shown_whole_behind_what_is_known_of_it() -> None:
    given = {"command": "make\n\nFolder: /safe", "description": "Build\nit", "run_in_background": True, "timeout": 5}
    asked = _asked("Bash", given, agent_id="a1", agent_type="general-purpose")
    assert asked.title == "Claude Code wants to run a command"
    assert asked.text == (
        "Folder: /work\nSubagent: general-purpose\nIts description: Build\u240ait\n"
        "run_in_background: true\ntimeout: 5\n\nmake\n\nFolder: /safe"
    )
    assert asked.may_be_first


def test_a_call_of_an_mcp_server_is_shown_with_all_its_parameters() -> None:
    asked = _asked("mcp__notes__keep", {"note": "buy milk", "at": {"hour": 7}})
    assert asked.title == "Claude Code wants to use keep of the MCP server notes"
    assert asked.text == 'Folder: /work\n\n{\n  "note": "buy milk",\n  "at": {\n    "hour": 7\n  }\n}'
    assert (asked.file, asked.may_be_first) == (None, False)


def test_an_edit_is_shown_as_a_diff_against_the_file(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("one\ntwo\ntwo\n", encoding="utf-8")
    name = str(file).lstrip("/")
    head = f"Folder: /work\n\n--- a/{name}\n+++ b/{name}\n"
    for tool, change, changed in (
        ("Edit", {"old_string": "one", "new_string": "1", "replace_all": False}, "-one\n+1\n two\n two\n"),
        ("Edit", {"old_string": "two", "new_string": "2", "replace_all": True}, " one\n-two\n-two\n+2\n+2\n"),
        ("Write", {"content": "one\ntwo\n"}, " one\n two\n-two\n"),
        ("MultiEdit", {"edits": [{"old_string": "one", "new_string": "two"}]}, "-one\n+two\n two\n two\n"),
    ):
        asked = _asked(tool, {"file_path": str(file), **change})
        assert asked.title == f"Claude Code wants to edit {file}"
        assert asked.file == str(file)
        assert asked.text.startswith(head)
        assert asked.text.endswith(changed)


@pytest.mark.parametrize(
    "given",
    [
        {"old_string": "two", "new_string": "2"},
        {"old_string": "none", "new_string": "2"},
        {"old_string": "one", "new_string": "1", "more": "x"},
        {"content": "one\ntwo\ntwo\n"},
    ],
    ids=["twice", "not-there", "an-unknown-member", "no-change"],
)
def test_an_edit_that_is_no_plain_change_is_shown_as_its_input(tmp_path: Path, given: dict[str, Any]) -> None:
    file = tmp_path / "a.py"
    file.write_text("one\ntwo\ntwo\n", encoding="utf-8")
    text = _asked("Edit", {"file_path": str(file), **given}).text
    assert "---" not in text
    for name in given:
        assert f'"{name}"' in text


def test_a_file_that_is_no_text_is_not_shown_as_a_new_one(tmp_path: Path) -> None:
    file = tmp_path / "a.bin"
    file.write_bytes(b"\0\1\2\xff")
    assert "/dev/null" not in _asked("Write", {"file_path": str(file), "content": "x\n"}).text
    assert "/dev/null" in _asked("Write", {"file_path": str(tmp_path / "new"), "content": "x\n"}).text


@pytest.mark.parametrize("tool", sorted(IN_TERMINAL))
def test_questions_with_more_answers_than_two_stay_in_the_terminal(tool: str) -> None:
    assert read_permission(_message(tool, {})) is None


def test_what_is_too_large_to_be_read_stays_in_the_terminal() -> None:
    assert read_permission(_message("Bash", {"command": "x" * MAXIMUM_CHARACTERS})) is None


@pytest.mark.parametrize(
    "message",
    [{}, _message("Bash", "x"), _message("Bash", {}, tool_name=1), _message("Bash", {}, hook_event_name="Stop")],
)
def test_a_message_of_another_kind_is_refused(message: dict[str, Any]) -> None:
    with pytest.raises(DecodeError):
        read_permission(message)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.sampled_from(["Bash", "Edit", "Write", "MultiEdit", "NotebookEdit", "WebFetch", "mcp__a__b", "mcp__", "Skill"]),
    st.dictionaries(
        st.sampled_from(["command", "file_path", "old_string", "new_string", "content", "edits", "description", "x"]),
        _JSON, max_size=6,
    ),
)  # fmt: skip
def test_each_value_of_any_input_is_shown(tool: str, given: dict[str, Any]) -> None:
    if isinstance(given.get("file_path"), str):
        del given["file_path"]
    text = _asked(tool, given).text
    for name, value in given.items():
        if isinstance(value, (bool, int)):
            assert str(value).lower() in text
        elif name == "command" and tool == "Bash" and isinstance(value, str):
            assert text.endswith(f"\n{value}")


def test_the_output_of_the_hook_says_where_the_user_answered() -> None:
    def decision(*answer: Any) -> object:
        return write_permission(PermissionAnswer(*answer))["hookSpecificOutput"]

    event = {"hookEventName": "PermissionRequest"}
    assert decision(True, "Neovim") == {**event, "decision": {"behavior": "allow"}}
    refused = "The user refused this in a\u240aphone"
    assert decision(False, "a\nphone") == {**event, "decision": {"behavior": "deny", "message": f"{refused}."}}
    assert decision(False, "a\nphone", "no\nway") == {
        **event, "decision": {"behavior": "deny", "message": f"{refused}: no\nway"},
    }  # fmt: skip


@pytest.mark.parametrize("path", ["a.py", "~/a.py", "/a.py\0"])
def test_an_edit_of_a_file_whose_folder_is_not_said_is_shown_as_its_input(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.py").write_text("one\ntwo\n", encoding="utf-8")  # another one than in the agent's folder
    monkeypatch.chdir(tmp_path)
    asked = _asked("Write", {"file_path": path, "content": "one\n"})
    assert asked.text == 'Folder: /work\n\n{\n  "content": "one\\n"\n}'
    assert asked.file is None


def test_an_edit_through_a_link_names_the_file_that_it_changes(tmp_path: Path) -> None:
    target, link = tmp_path / "profile", tmp_path / "a.py"
    target.write_text("one\n", encoding="utf-8")
    link.symlink_to(target)
    asked = _asked("Edit", {"file_path": str(link), "old_string": "one", "new_string": "1"})
    assert asked.text.startswith(f"Folder: /work\nA link to: {target}\n\n--- ")


def test_what_an_agent_names_like_our_facts_does_not_replace_them() -> None:
    asked = _asked("Bash", {"command": "make", "Folder": "/safe"})
    assert asked.text == "Folder: /work\nIts Folder: /safe\n\nmake"
