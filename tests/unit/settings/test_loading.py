import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.encoding.jsonc import JsoncError, parse
from isthmus.settings import MAXIMUM_BYTES, ReadOnlyTools, Settings, SettingsError, load_settings


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return folder_with_settings(tmp_path / "home", None)


def folder_with_settings(folder: Path, text: str | None) -> Path:
    (folder / ".gemini").mkdir(parents=True)
    if text is not None:
        (folder / ".gemini" / "settings.json").write_text(text, encoding="utf-8")
    return folder


def test_without_files_nothing_is_said(tmp_path: Path, home: Path) -> None:
    assert load_settings(tmp_path, home) == Settings()


def test_comments_and_trailing_commas_are_read_as_gemini_cli_does(tmp_path: Path, home: Path) -> None:
    project = folder_with_settings(
        tmp_path / "p",
        '{ // the model\n "model": {"name": "gemini-x", /* http://no "comment" */ "maxSessionTurns": 7,},\n}',
    )
    settings = load_settings(project, home, is_trusted=True)
    assert (settings.project_model, settings.max_model_turns) == ("gemini-x", 7)


def test_the_project_counts_before_the_user_key_by_key(tmp_path: Path) -> None:
    home = folder_with_settings(tmp_path / "h", '{"isthmus": {"toolSearch": "never"}, "ide": {"enabled": false}}')
    project = folder_with_settings(tmp_path / "p", '{"isthmus": {"toolSearch": "always"}}')
    settings = load_settings(project, home, is_trusted=True)
    assert (settings.tool_search, settings.ide_enabled) == ("always", False)


def test_our_own_key_counts_before_gemini_clis(tmp_path: Path, home: Path) -> None:
    text = '{"isthmus": {"model": "openai:x"}, "model": {"name": "gemini-x"}}'
    project = folder_with_settings(tmp_path / "p", text)
    assert load_settings(tmp_path, project).model == "openai:x"
    assert load_settings(project, home, is_trusted=True).project_model == "openai:x"


def test_a_project_names_a_model_only_in_a_trusted_folder(tmp_path: Path) -> None:
    home = folder_with_settings(tmp_path / "h", '{"model": {"name": "gemini-mine"}}')
    for key in ('"model": {"name": "gemini-theirs"}', '"isthmus": {"model": "gemini-theirs"}'):
        project = folder_with_settings(tmp_path / f"p{len(key)}", f"{{{key}}}")
        settings = load_settings(project, home)
        assert (settings.model, settings.project_model) == ("gemini-mine", None)
        (line,) = settings.ignored
        assert line.startswith(f"{project}/.gemini/settings.json: not used, because the folder is not trusted: ")
        settings = load_settings(project, home, is_trusted=True)
        assert (settings.model, settings.project_model, settings.ignored) == ("gemini-mine", "gemini-theirs", ())


@pytest.mark.parametrize("model", ["scripted:talk.yaml", " Scripted:/dev/zero", "ollama:x", "demo"])
def test_a_project_never_chooses_a_script_or_a_local_server(tmp_path: Path, home: Path, model: str) -> None:
    project = folder_with_settings(tmp_path / "p", json.dumps({"isthmus": {"model": model}}))
    for is_trusted in (False, True):
        settings = load_settings(project, home, is_trusted=is_trusted)
        assert (settings.model, settings.project_model, len(settings.ignored)) == (None, None, 1)


@pytest.mark.parametrize(
    ("value", "names"), [('"RULES.md"', ("RULES.md",)), ('["A.md", "B.md"]', ("A.md", "B.md")), ("[]", ())]
)
def test_the_files_of_instructions_have_one_name_or_several(
    tmp_path: Path, home: Path, value: str, names: tuple[str, ...]
) -> None:
    project = folder_with_settings(tmp_path / "p", f'{{"context": {{"fileName": {value}}}}}')
    assert load_settings(project, home, is_trusted=True).context_files == names


def test_a_project_cannot_widen_what_runs_without_being_asked(tmp_path: Path) -> None:
    dangerous = '{"general": {"defaultApprovalMode": "yolo"}, "tools": {"allowed": ["run_shell_command"]}}'
    project = folder_with_settings(tmp_path / "p", dangerous)
    home = folder_with_settings(tmp_path / "h", '{"tools": {"allowed": ["write_file"]}}')
    settings = load_settings(project, home)
    assert (settings.approval_mode, settings.allowed_tools) == (None, ("write_file",))


def test_what_is_not_asked_about_is_the_users_own_to_say(tmp_path: Path) -> None:
    freely = """{
      "isthmus": {"approval": {"readOnlyTools": {"files": "allow", "mail": "ask"}}, "toolSearch": "always"},
      "security": {"enablePermanentToolApproval": true}
    }"""
    project = folder_with_settings(tmp_path / "p", freely)
    settings = load_settings(project, folder_with_settings(tmp_path / "h", "{}"), is_trusted=True)
    assert (settings.read_only_tools, settings.keeps_approvals) == (ReadOnlyTools(), False)
    assert settings.tool_search == "always"
    settings = load_settings(tmp_path, folder_with_settings(tmp_path / "mine", freely))
    assert [settings.read_only_tools.are_free(name) for name in ("files", "mail", "other")] == [True, False, False]
    assert settings.keeps_approvals
    everywhere = folder_with_settings(tmp_path / "all", '{"isthmus": {"approval": {"readOnlyTools": "allow"}}}')
    assert load_settings(tmp_path, everywhere).read_only_tools.are_free("any")


@pytest.mark.parametrize("value", ['"yes"', "true", '{"files": 1}', '{"files": ["allow"]}', "[]"])
def test_a_rule_for_tools_that_only_read_is_allow_or_ask(tmp_path: Path, value: str) -> None:
    home = folder_with_settings(tmp_path / "h", f'{{"isthmus": {{"approval": {{"readOnlyTools": {value}}}}}}}')
    with pytest.raises(SettingsError, match=r'readOnlyTools.* is .*; expected "allow" or "ask"'):
        load_settings(tmp_path, home)


def test_in_the_home_folder_the_file_is_the_users_own(tmp_path: Path) -> None:
    home = folder_with_settings(tmp_path / "h", '{"general": {"defaultApprovalMode": "auto_edit"}}')
    assert load_settings(home, home).approval_mode == "auto_edit"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{\n  "model": {"name": "x"}\n  "ide": {}\n}', "line 3, column 3"),
        ('{"model": ', "line 1, column 11"),
        ("{\n  // only a comment\n  model: 1\n}", "line 3, column 3"),
        ('{"a": 1}\n}', "line 2, column 1"),
    ],
)
def test_a_syntax_error_names_file_line_and_column(tmp_path: Path, home: Path, text: str, place: str) -> None:
    project = folder_with_settings(tmp_path / "p", text)
    with pytest.raises(SettingsError, match=rf"p/\.gemini/settings\.json, {place}"):
        load_settings(project, home)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", r"expected an object"),
        ('{"model": {"name": 7}}', r"model\.name is 7; expected a string"),
        ('{"model": {"maxSessionTurns": "ten"}}', r"maxSessionTurns is 'ten'; expected a whole number"),
        ('{"model": {"maxSessionTurns": true}}', r"expected a whole number"),
        ('{"model": {"compressionThreshold": 2}}', r"compressionThreshold is 2; expected a number above 0, at most 1"),
        ('{"context": {"fileName": 7}}', r"context\.fileName is 7; expected a file's name"),
        ('{"context": {"fileName": ["../GEMINI.md"]}}', r"expected a file's name without folders"),
        ('{"ide": {"enabled": "yes"}}', r"ide\.enabled is 'yes'; expected true or false"),
        (
            '{"isthmus": {"toolSearch": "maybe"}}',
            r"toolSearch is 'maybe'; expected \"auto\" or \"always\" or \"never\"",
        ),
        ('{"isthmus": {"toolSearchShare": 0}}', r"toolSearchShare is 0; expected a number above 0, at most 1"),
    ],
)
def test_a_value_of_another_type_names_its_key(tmp_path: Path, home: Path, text: str, message: str) -> None:
    project = folder_with_settings(tmp_path / "p", text)
    with pytest.raises(SettingsError, match=message):
        load_settings(project, home, is_trusted=True)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    )
)
def test_all_json_is_read_as_it_is(value: object) -> None:
    assert parse(json.dumps(value)) == value
    assert parse(json.dumps(value, indent=1, ensure_ascii=False)) == value


@given(st.text(alphabet='{}[]",:/* \n1a\\', max_size=40))
def test_whatever_comes_is_read_or_refused_with_a_place(text: str) -> None:
    lines = text.count("\n") + 1
    try:
        parse(text)
    except JsoncError as error:
        refused = error
    else:
        return
    assert 1 <= refused.line <= lines
    assert refused.column >= 1


@pytest.mark.parametrize(("value", "size"), [('"500MB"', 500_000_000), ("1024", 1024), ('"none"', 0), ("0", 0)])
def test_the_journals_maximum_is_a_size_of_the_users_own_file(tmp_path: Path, value: str, size: int) -> None:
    text = f'{{"isthmus": {{"journal": {{"maxSize": {value}}}}}}}'
    home, project = folder_with_settings(tmp_path / "h", text), folder_with_settings(tmp_path / "p", None)
    assert load_settings(project, home).journal_maximum_size == size
    assert load_settings(home, project).journal_maximum_size is None


@pytest.mark.parametrize("value", ["true", "-1", '"big"', "[]", "1.5"])
def test_a_maximum_of_the_journal_that_is_no_size_is_named(tmp_path: Path, value: str) -> None:
    home = folder_with_settings(tmp_path / "h", f'{{"isthmus": {{"journal": {{"maxSize": {value}}}}}}}')
    with pytest.raises(SettingsError, match=r'isthmus\.journal\.maxSize.*"none"'):
        load_settings(tmp_path, home)


def test_where_logins_are_kept_is_said_by_the_users_own_file(tmp_path: Path, home: Path) -> None:
    project = folder_with_settings(tmp_path / "p", '{"isthmus": {"tokenStore": "keyring"}}')
    assert load_settings(project, home).token_store is None
    assert load_settings(project, project).token_store == "keyring"
    broken = folder_with_settings(tmp_path / "b", '{"isthmus": {"tokenStore": "vault"}}')
    with pytest.raises(SettingsError, match=r'isthmus\.tokenStore is \'vault\'; expected "file" or "keyring"'):
        load_settings(broken, broken)


@pytest.mark.parametrize("device", ["/dev/zero", "a pipe"])
def test_a_device_in_place_of_a_settings_file_is_not_read(tmp_path: Path, home: Path, device: str) -> None:
    (tmp_path / ".gemini").mkdir()
    path = tmp_path / ".gemini" / "settings.json"
    if device == "a pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(device)
    with pytest.raises(SettingsError, match=r"settings.json cannot be read: .*not a regular file"):
        load_settings(tmp_path, home)


def test_a_settings_file_has_a_size(tmp_path: Path, home: Path) -> None:
    folder_with_settings(tmp_path / "p", '{"model": {"name": "x"}}' + " " * MAXIMUM_BYTES)
    with pytest.raises(SettingsError, match="larger than"):
        load_settings(tmp_path / "p", home)
