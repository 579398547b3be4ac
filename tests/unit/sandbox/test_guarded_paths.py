"""Files that other programs execute or load without being asked."""

from pathlib import PurePosixPath

import pytest

from isthmus.sandbox.guarded_paths import GUARDED, Effect, effect_of, starting_files, starts_program
from isthmus.sandbox.known_paths import HOME_SECRETS
from isthmus.settings.trust.forms import CLAUDE_SETTINGS, MCP_FILE, SETTINGS
from isthmus.settings.trust.reading import COMMANDS, SKILL_FOLDERS, SUBAGENT_FOLDERS


@pytest.mark.parametrize(
    ("path", "effect"),
    [
        ("/w/.gemini/settings.json", Effect.AGENT),
        ("/w/.gemini/commands/deep/x.toml", Effect.AGENT),
        ("/w/sub/.geminiignore", Effect.AGENT),
        ("/w/.aiexclude", Effect.AGENT),
        ("/w/.mcp.json", Effect.AGENT),
        ("/w/sub/GEMINI.md", Effect.AGENT),
        ("/w/Agents.md", Effect.AGENT),
        ("/w/CLAUDE.md", Effect.AGENT),
        ("/w/.claude/settings.json", Effect.AGENT),
        ("/w/.qwen/settings.json", Effect.AGENT),
        ("/w/.cursor/rules/a.mdc", Effect.AGENT),
        ("/w/.codex/config.toml", Effect.AGENT),
        ("/w/.github/copilot-instructions.md", Effect.AGENT),
        ("/w/.vscode/tasks.json", Effect.EDITOR),
        ("/w/.idea/workspace.xml", Effect.EDITOR),
        ("/w/.zed/tasks.json", Effect.EDITOR),
        ("/w/.devcontainer/devcontainer.json", Effect.EDITOR),
        ("/w/all.code-workspace", Effect.EDITOR),
        ("/w/.exrc", Effect.EDITOR),
        ("/w/.nvim.lua", Effect.EDITOR),
        ("/w/.nvimrc", Effect.EDITOR),
        ("/w/.vimrc", Effect.EDITOR),
        ("/w/sub/.dir-locals.el", Effect.EDITOR),
        ("/w/.git/hooks/pre-commit", Effect.VERSION_CONTROL),
        ("/w/sub/.git", Effect.VERSION_CONTROL),
        ("/w/.gitattributes", Effect.VERSION_CONTROL),
        ("/w/.gitmodules", Effect.VERSION_CONTROL),
        ("/w/.gitconfig", Effect.VERSION_CONTROL),
        ("/w/.husky/pre-commit", Effect.VERSION_CONTROL),
        ("/w/.pre-commit-config.yaml", Effect.VERSION_CONTROL),
        ("/w/lefthook.yml", Effect.VERSION_CONTROL),
        ("/w/.github/workflows/ci.yml", Effect.CONTINUOUS_INTEGRATION),
        ("/w/.gitlab-ci.yml", Effect.CONTINUOUS_INTEGRATION),
        ("/w/.env", Effect.ENVIRONMENT),
        ("/w/.env.local", Effect.ENVIRONMENT),
        ("/w/.envrc", Effect.ENVIRONMENT),
        ("/w/.npmrc", Effect.ENVIRONMENT),
        ("/w/.yarnrc.yml", Effect.ENVIRONMENT),
        ("/w/.pypirc", Effect.ENVIRONMENT),
    ],
)
def test_a_guarded_file_has_its_effect_in_any_folder(path: str, effect: Effect) -> None:
    assert effect_of(PurePosixPath(path)) is effect


@pytest.mark.parametrize(
    "path",
    [
        "/w/.GEMINI/settings.json",
        "/w/.Env",
        "/w/.ENV.local",
        "/w/.GitHub/Workflows/x.yml",
        "/w/.g\u200cit/config",
        "/w/.git./config",
        "/w/GEMINI.md ",
        "/w/\ufeff.exrc",
    ],
)
def test_a_name_that_some_file_systems_take_for_a_guarded_one_is_guarded(path: str) -> None:
    assert effect_of(PurePosixPath(path)) is not None


@pytest.mark.parametrize(
    "path",
    [
        "/w/src/main.py",
        "/w/environment.py",
        "/w/.github/CODEOWNERS",
        "/w/workflows/ci.yml",
        "/w/Makefile",
        "/w/package.json",
        "/w/.gitignore",
        "/w/gemini.mdx",
        "/w/docs/git/x.md",
        "/w/repo.git/x",
        "/",
    ],
)
def test_ordinary_files_are_not_guarded(path: str) -> None:
    assert effect_of(PurePosixPath(path)) is None


def test_the_table_holds_sorted_lower_case_paths_once() -> None:
    entries = [entry for of_effect in GUARDED.values() for entry in of_effect]
    assert len(entries) == len(set(entries))
    for of_effect in GUARDED.values():
        assert list(of_effect) == sorted(of_effect)
        assert all(entry == entry.casefold() and not entry.startswith("/") for entry in of_effect)


@pytest.mark.parametrize(
    "file", [SETTINGS, *CLAUDE_SETTINGS, MCP_FILE, f"{COMMANDS}/x.toml", *SKILL_FOLDERS, *SUBAGENT_FOLDERS]
)
def test_what_a_trusted_project_starts_here_is_among_the_files_that_start_programs(file: str) -> None:
    assert starts_program(PurePosixPath("/w") / file)
    assert PurePosixPath(file).parts[0] in {name.parts[0] for name, _ in starting_files()}


@pytest.mark.parametrize(
    "path",
    [
        "/home/me/.ssh/authorized_keys",
        "/home/me/.ssh/config",
        "/srv/keys/authorized_keys",
        "/home/me/.bashrc",
        "/home/me/.zlogin",
        "/home/me/.config/autostart/x.desktop",
        "/home/me/.config/systemd/user/x.service",
        "/home/me/.config/fish/conf.d/x.fish",
        "/home/me/.config/git/config",
        "/home/me/.local/bin/ls",
        "/w/.git/hooks/pre-commit",
        "/w/opencode.json",
        "/w/all.code-workspace",
    ],
)
def test_files_that_start_programs_are_known_in_any_folder(path: str) -> None:
    assert starts_program(PurePosixPath(path))
    assert effect_of(PurePosixPath(path)) is not None


@pytest.mark.parametrize(
    "path", ["/w/AGENTS.md", "/w/.env", "/w/.github/workflows/ci.yml", "/w/.gitattributes", "/w/a"]
)
def test_files_that_only_instruct_or_run_elsewhere_start_nothing_here(path: str) -> None:
    assert not starts_program(PurePosixPath(path))


@pytest.mark.parametrize(
    "path", [".netrc", ".pypirc", ".npmrc", ".ssh", ".aws", ".kube", ".gnupg", ".docker/config.json"]
)
def test_what_logs_in_elsewhere_is_guarded_in_any_folder(path: str) -> None:
    assert effect_of(PurePosixPath("/home/me") / path) is not None
    assert any(path.startswith(secret) for secret in HOME_SECRETS)


def test_the_records_of_what_was_agreed_to_are_guarded() -> None:
    assert effect_of(PurePosixPath("/home/me/.local/share/isthmus/agreements/x.json")) is Effect.AGENT
