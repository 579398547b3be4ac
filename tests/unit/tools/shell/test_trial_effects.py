"""The judgement of what a tried command changed, the guard of what is applied, and what is shown: properties."""

from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.tools.shell.trials.archive import ArchiveError, TriedCommand, packed, unpacked
from isthmus.tools.shell.trials.effect import (
    PACKAGES,
    ChangeFacts,
    EntryState,
    Kind,
    TriedChange,
    in_order,
    is_closed,
    judge,
    stale_paths,
)
from isthmus.tools.shell.trials.shown import MAXIMUM_SHOWN_CHARACTERS, shown_changes

NAMES = st.sampled_from(
    [
        *("a.py", "src", "build", "dist", "x.log", ".git", ".gemini", ".env", ".venv", "node_modules", "__pycache__"),
        *("m.pyc", ".pytest_cache", "AGENTS.md", "..", ".", "", "hooks", ".isthmus", "id_rsa", "a\nb", "lib.pth", "ok"),
    ]
)
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
STATES = st.builds(
    EntryState,
    st.sampled_from(list(Kind)),
    st.sampled_from([0o644, 0o755, 0o4755, 0o2755, 0o1777, 0o600]),
    st.sampled_from(["a", "../x", "/etc", "src", "build/a", ".git/hooks", "..", "x/../../y", ""]),
)
CHANGES = st.builds(TriedChange, PATHS, st.none() | STATES, st.none() | STATES)
FACTS = st.builds(ChangeFacts, st.frozensets(PATHS), st.just(frozenset[str]()), st.frozensets(PATHS))
FILE = EntryState(Kind.FILE, 0o644, "new", 3)


def built(path: str, after: EntryState = FILE, *, is_ignored: bool = True) -> bool:
    facts = ChangeFacts(frozenset({path}) if is_ignored else frozenset())
    return bool(judge([TriedChange(path, None, after)], facts).built)


@given(st.lists(CHANGES, max_size=6), FACTS)
def test_nothing_that_is_closed_leads_out_or_has_special_bits_is_applied(
    changes: list[TriedChange], facts: ChangeFacts
) -> None:
    judgement = judge(changes, facts)
    assert not (judgement.refusal and judgement.applied)
    assert set(judgement.applied) <= set(changes)
    assert not set(judgement.shown) & set(judgement.built)
    for change in judgement.applied:
        parts = PurePosixPath(change.path).parts
        assert not is_closed(change.path)
        assert ".." not in parts
        assert not change.path.startswith("/")
        assert "\n" not in change.path
        states = [state for state in (change.before, change.after) if state is not None]
        assert all(state.kind is not Kind.OTHER for state in states)
        assert len({state.kind for state in states}) <= 1
        if change.after is not None:
            assert not change.after.mode & 0o7000
        if change.after is not None and change.after.kind is Kind.LINK:
            assert not change.after.content.startswith(("/", "../x", ".git"))
        assert not any("/".join(parts[:count]) in facts.links for count in range(1, len(parts)))


@given(st.lists(CHANGES, max_size=6), FACTS)
def test_what_is_applied_unasked_is_ignored_or_a_cache_and_no_package(
    changes: list[TriedChange], facts: ChangeFacts
) -> None:
    for change in judge(changes, facts).built:
        parts = change.path.split("/")
        assert change.path in facts.ignored or ".pytest_cache" in parts
        assert PACKAGES.isdisjoint(parts)


@given(st.lists(CHANGES, max_size=6), FACTS)
def test_each_change_is_applied_shown_or_thrown_away_as_bytecode(
    changes: list[TriedChange], facts: ChangeFacts
) -> None:
    judgement = judge(changes, facts)
    if not judgement.refusal:
        for change in set(changes) - set(judgement.applied):
            assert change.path.endswith((".pyc", ".pyo")) or "__pycache__" in change.path.split("/")
            assert change.after is not None


@given(st.lists(CHANGES, max_size=8, unique_by=lambda change: change.path))
def test_outer_folders_are_made_first_and_removed_last(changes: list[TriedChange]) -> None:
    ordered = in_order(changes)
    assert sorted(ordered, key=repr) == sorted(changes, key=repr)
    for number, change in enumerate(ordered):
        for later in ordered[number + 1 :]:
            if change.after is not None and later.after is not None:
                assert not change.path.startswith(f"{later.path}/")
            if change.after is None:
                assert later.after is None
                assert not later.path.startswith(f"{change.path}/")


@given(st.lists(CHANGES, max_size=6, unique_by=lambda change: change.path), st.data())
def test_a_path_that_is_not_as_it_was_stops_everything(changes: list[TriedChange], data: st.DataObject) -> None:
    now = {change.path: change.before for change in changes}
    assert stale_paths(changes, now) == ()
    if changes:
        chosen = data.draw(st.sampled_from(changes))
        now[chosen.path] = EntryState(Kind.FILE, 0o644, "of the user") if chosen.before is None else None
        assert stale_paths(changes, now) == (chosen.path,)


@pytest.mark.parametrize(
    ("path", "is_ignored", "is_built"),
    [
        ("build/app", True, True),
        ("build/app", False, False),
        ("dist/a/b.js", True, True),
        ("a.log", True, True),
        ("a.log", False, False),
        (".coverage", True, True),
        ("sub/.pytest_cache/v/x", False, True),
        ("local_settings.py", True, False),
        (".venv/lib/evil.pth", True, False),
        ("node_modules/.bin/tsc", True, False),
        ("bin/tool", True, False),
        ("vendor/a.php", True, False),
        ("build/node_modules/x/index.js", True, False),
    ],
)
def test_build_outputs_are_known_by_what_git_ignores_and_their_folders(
    path: str, is_ignored: bool, is_built: bool
) -> None:
    assert built(path, is_ignored=is_ignored) is is_built


def test_a_program_outside_of_build_folders_is_no_build_output() -> None:
    assert not built("run.log", EntryState(Kind.FILE, 0o755))
    assert built("build/run", EntryState(Kind.FILE, 0o755))


def test_an_environment_of_another_name_is_no_build_output() -> None:
    facts = ChangeFacts(frozenset({"build/bin/python"}), frozenset({"build/bin/python"}))
    assert judge([TriedChange("build/bin/python", None, FILE)], facts).shown


@pytest.mark.parametrize("name", [".git/config", "sub/.GIT/x", ".gemini/settings.json", "CLAUDE.md", ".env", "x.pem"])
def test_files_that_are_asked_about_each_time_make_it_a_plain_question(name: str) -> None:
    assert (
        "asked about each time"
        in judge([TriedChange("a.py", None, FILE), TriedChange(name, None, FILE)], ChangeFacts()).refusal
    )


def test_a_link_through_a_link_is_refused() -> None:
    link = TriedChange("l", None, EntryState(Kind.LINK, 0, "away/x"))
    assert judge([link], ChangeFacts()).shown == (link,)
    assert "lead out" in judge([link], ChangeFacts(links=frozenset({"away"}))).refusal
    assert (
        "write through a link"
        in judge([TriedChange("away/x", None, FILE)], ChangeFacts(links=frozenset({"away"}))).refusal
    )


def test_too_many_changes_are_refused() -> None:
    assert "3000" in judge([TriedChange(f"a{number}", None, FILE) for number in range(3000)], ChangeFacts()).refusal


@given(st.text(max_size=60), st.text(max_size=60))
def test_each_changed_line_is_shown(old: str, new: str) -> None:
    change = TriedChange("a.txt", EntryState(Kind.FILE, 0o644, "old"), EntryState(Kind.FILE, 0o644, "new"))
    text = shown_changes([change], [], {"a.txt": (old.encode(), new.encode())}, 0)
    assert text is not None
    if "\0" not in old + new:
        added, removed = set(new.split("\n")) - set(old.split("\n")), set(old.split("\n")) - set(new.split("\n"))
        assert all(f"+{line}" in text for line in added if line)
        assert all(f"-{line}" in text for line in removed if line)


def test_what_is_too_long_to_show_is_not_shown_in_part() -> None:
    content = b"a\n" * MAXIMUM_SHOWN_CHARACTERS
    assert shown_changes([TriedChange("a", None, FILE)], [], {"a": (b"", content)}, 0) is None


def test_modes_links_folders_and_binaries_are_named() -> None:
    changes = [
        TriedChange("d", None, EntryState(Kind.FOLDER, 0o755)),
        TriedChange("l", None, EntryState(Kind.LINK, 0, "a.py")),
        TriedChange("m", EntryState(Kind.FILE, 0o644, "x"), EntryState(Kind.FILE, 0o755, "x")),
        TriedChange("x", None, EntryState(Kind.FILE, 0o755, "y")),
        TriedChange("b", EntryState(Kind.FILE, 0o644, "1"), EntryState(Kind.FILE, 0o644, "2")),
    ]
    text = shown_changes(changes, [TriedChange("build/a", None, FILE)], {"b": (b"\0", b"\0\0"), "x": (b"", b"#!\n")}, 3)
    assert text is not None
    for words in (
        *("exit code 3", "created d/", "created l (a link to a.py)", "changed m (mode 644 to 755)"),
        *("created x (executable) (1 line)", "changed b (not text, 1 to 2 bytes)", "and 1 build output in build"),
    ):
        assert words in text


@given(st.lists(CHANGES, max_size=5, unique_by=lambda change: change.path), st.binary(max_size=50), st.integers(0, 200))
def test_what_is_kept_comes_back_whole_or_not_at_all(changes: list[TriedChange], content: bytes, at: int) -> None:
    contents = {change.path: content for change in changes if change.after is not None}
    tried = TriedCommand("make", "/w", "shown", "told", tuple(changes), contents)
    digest, data = packed(tried)
    assert unpacked(data, digest) == tried
    damaged = bytearray(data)
    damaged[at % len(damaged)] ^= 1
    with pytest.raises(ArchiveError, match="not what was shown"):
        unpacked(bytes(damaged), digest)
