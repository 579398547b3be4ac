from pathlib import Path

import pytest

from ledger import ROOT, LedgerError, Requirement, State, ledger_file, load, main, problems, render
from requirement_marks import read_marks


def requirement(
    name: str, state: State = State.PENDING, *, wire: bool = False, reason: str | None = None
) -> Requirement:
    return Requirement(name, "3.2 ToolCall", 'A "quoted" text: \\ ü ✓', "must", 1, wire, state, reason)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Make a checkout with a small ledger and no test."""
    (tmp_path / "tests" / "unit").mkdir(parents=True)
    (tmp_path / "tests" / "peers").mkdir()
    write_ledger(
        tmp_path,
        *(requirement(f"A2A-00{number}") for number in range(1, 7)),
        requirement("GEM-001", wire=True),
        requirement("GEM-002", State.DIVERGENCE, reason="Real clients need another form."),
    )
    return tmp_path


def write_ledger(root: Path, *requirements: Requirement) -> None:
    ledger_file(root).write_text(render(requirements), encoding="utf-8")


def write_test(root: Path, source: str, path: str = "tests/unit/test_written.py") -> None:
    (root / path).write_text(f"import pytest\n\n{source}\n", encoding="utf-8")


def disagreements(root: Path) -> str:
    return "\n".join(problems(load(root), read_marks(root)))


@pytest.mark.slow
def test_the_ledger_and_the_tests_of_this_project_agree() -> None:
    found = problems(load(ROOT), read_marks(ROOT))
    assert not found, "\n".join(["`make ledger-update` sets covered and pending; the rest is for you:", *found])


def test_the_ledger_of_this_project_is_in_the_form_that_the_update_writes() -> None:
    assert ledger_file(ROOT).read_text(encoding="utf-8") == render(load(ROOT))


def test_what_is_rendered_is_loaded_again_unchanged(checkout: Path) -> None:
    requirements = [requirement("A2A-001"), requirement("GEM-002", State.DIVERGENCE, reason='"so"\x7f\n')]
    write_ledger(checkout, *requirements)
    assert [entry.text for entry in load(checkout)] == [entry.text for entry in requirements]
    assert load(checkout)[1].reason == '"so"\x7f'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('state = "divergence"', 'state = "pending"'),
        ('reason = "Real clients need another form."', ""),
        ('reason = "Real clients need another form."', 'reason = " "'),
        ("wire = true", 'wire = "yes"'),
        ("part = 1", 'part = 1\ncolour = "red"'),
        ('level = "must"', 'level = "perhaps"'),
        ("[GEM-001]", "[GEM-002]"),
    ],
)
def test_a_ledger_in_another_form_is_refused(checkout: Path, before: str, after: str) -> None:
    text = ledger_file(checkout).read_text(encoding="utf-8")
    assert before in text
    ledger_file(checkout).write_text(text.replace(before, after), encoding="utf-8")
    with pytest.raises(LedgerError, match=r"GEM|A2A|requirements\.toml"):
        load(checkout)


def test_an_unknown_id_on_a_test_is_found(checkout: Path) -> None:
    write_test(checkout, '@pytest.mark.requirement("A2A-999")\nasync def test_x(): ...')
    assert disagreements(checkout) == "tests/unit/test_written.py::test_x: unknown requirement A2A-999"


def test_a_covered_id_without_a_test_is_found(checkout: Path) -> None:
    write_ledger(checkout, requirement("A2A-001", State.COVERED))
    assert "A2A-001 is covered, but no test carries it" in disagreements(checkout)


def test_a_pending_id_with_a_test_is_found(checkout: Path) -> None:
    write_test(checkout, '@pytest.mark.requirement("A2A-001")\ndef test_x(): ...')
    assert "A2A-001 is pending, but tests/unit/test_written.py::test_x carries it" in disagreements(checkout)


def test_an_id_of_the_wire_on_a_unit_test_is_found(checkout: Path) -> None:
    source = '@pytest.mark.requirement("GEM-001")\ndef test_x(): ...'
    write_test(checkout, source)
    assert "GEM-001 is about the wire" in disagreements(checkout)
    (checkout / "tests/unit/test_written.py").unlink()
    write_test(checkout, source, "tests/peers/test_written.py")
    assert "wire" not in disagreements(checkout)


FIVE = '"A2A-001", "A2A-002", "A2A-003", "A2A-004", "A2A-005"'


@pytest.mark.parametrize(
    "source",
    [
        f"@pytest.mark.requirement({FIVE})\ndef test_x(): ...",
        'pytestmark = pytest.mark.requirement("A2A-001")\n\n'
        '@pytest.mark.requirement("A2A-002", "A2A-003")\nclass TestY:\n'
        '    @pytest.mark.requirement("A2A-004", "A2A-005")\n    def test_x(self): ...',
        '@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.requirement("A2A-001"))])\n'
        '@pytest.mark.requirement("A2A-002", "A2A-003", "A2A-004", "A2A-005")\ndef test_x(x): ...',
        f"CASES = [pytest.param(1, marks=pytest.mark.requirement({FIVE}))]",
    ],
)
def test_more_than_four_ids_on_a_test_are_found_wherever_they_stand(checkout: Path, source: str) -> None:
    write_test(checkout, source)
    assert "carries 5 requirement ids; 4 are the most" in disagreements(checkout)


def test_the_cases_of_a_parametrized_test_count_each_for_itself(checkout: Path) -> None:
    write_test(
        checkout,
        '@pytest.mark.parametrize("x", [\n'
        '    pytest.param(1, marks=pytest.mark.requirement("A2A-001", "A2A-002", "A2A-003")),\n'
        '    pytest.param(2, marks=[pytest.mark.requirement("A2A-004", "A2A-005", "A2A-006")]),\n'
        "])\ndef test_x(x): ...",
    )
    marks = read_marks(checkout)
    assert marks.problems == []
    assert [(str(test), len(test.ids)) for test in marks.tests] == [("tests/unit/test_written.py::test_x", 6)]


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("@pytest.mark.requirement(ID)\ndef test_x(): ...", "literal strings"),
        ("@pytest.mark.requirement()\ndef test_x(): ...", "at least one"),
        ("shows = pytest.mark.requirement\n\n@shows('A2A-001')\ndef test_x(): ...", "written as a call"),
        ("def test_x():\n    pytest.mark.requirement('A2A-001')", "written as a call"),
        ("@pytest.mark.requirement('A2A-001')\ndef helper(): ...", "is not a test"),
        ("@pytest.mark.skip(reason='later')\n@pytest.mark.requirement('A2A-001')\ndef test_x(): ...", "marked skip"),
        ("@pytest.mark.xfail\n@pytest.mark.requirement('A2A-001')\ndef test_x(): ...", "marked xfail"),
        ("@pytest.mark.requirement('A2A-001')\ndef test_x(:", "not Python"),
    ],
)
def test_a_mark_that_shows_nothing_or_cannot_be_read_is_found(checkout: Path, source: str, problem: str) -> None:
    write_test(checkout, source)
    assert problem in disagreements(checkout)


def test_the_update_sets_the_states_from_the_tests_and_keeps_divergences(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_test(checkout, '@pytest.mark.requirement("A2A-002", "GEM-002")\ndef test_x(): ...')
    assert main(["--update"], checkout) == 0
    assert "A2A-002: pending -> covered" in capsys.readouterr().out
    states = {entry.id: entry.state for entry in load(checkout)}
    assert (states["A2A-001"], states["A2A-002"], states["GEM-002"]) == (
        State.PENDING,
        State.COVERED,
        State.DIVERGENCE,
    )
    (checkout / "tests/unit/test_written.py").unlink()
    assert main(["--update"], checkout) == 0
    assert {entry.state for entry in load(checkout)} == {State.PENDING, State.DIVERGENCE}


def test_the_update_does_not_hide_an_unknown_id(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_test(checkout, '@pytest.mark.requirement("A2A-999")\ndef test_x(): ...')
    assert main(["--update"], checkout) == 1
    assert "unknown requirement A2A-999" in capsys.readouterr().err


def test_the_printed_table_names_states_tests_and_what_is_pending(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_test(checkout, '@pytest.mark.requirement("A2A-002")\ndef test_x(): ...')
    main(["--update"], checkout)
    capsys.readouterr()
    assert main([], checkout) == 0
    out = capsys.readouterr().out
    assert "tests/unit/test_written.py::test_x" in out
    assert "departs: Real clients need another form." in out
    assert "pending A2A, part 1: 001 003 004 005 006" in out
    assert out.splitlines()[-1].split() == ["all", "1", "6", "1", "8"]
