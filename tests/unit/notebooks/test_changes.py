"""Notebooks cell by cell: changes that are not accepted preserve every character."""

import itertools
import json
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from isthmus.notebooks.changes import Change, ChangeKind, NoSuchChangeError, compare
from isthmus.notebooks.notebook import NotebookError, parse, with_source
from isthmus.notebooks.view import changes_between, describe


def _code(source: str, identity: str | None = None, **more: Any) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": "code", "execution_count": 1, "metadata": {}, "outputs": []}
    return cell | ({"id": identity} if identity else {}) | {"source": source.splitlines(keepends=True)} | more


def _text(*cells: dict[str, Any], indent: int | None = 1, **metadata: Any) -> str:
    notebook = {"cells": list(cells), "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, indent=indent, ensure_ascii=False) + "\n"


_OUTPUT = {"output_type": "stream", "name": "stdout", "text": ["hé\\u00e9\n"]}

_OLD = """{
 "cells": [
  {"cell_type": "markdown",  "id":"intro", "metadata": {"tags":["a"]}, "source": ["# Title\\n", "text"]},
  {
   "cell_type": "code", "id": "load", "execution_count":  3, "metadata": {},
   "outputs": [{"output_type":"stream","name":"stdout","text":"caf\\u00e9"}],
   "source": "x = 1\\nprint(x)"
  } ,
  {"cell_type": "code", "id": "plot", "execution_count": null, "metadata": {}, "outputs": [], "source": []}
 ],
 "metadata": {"kernelspec": {"name": "python3",   "display_name": "Python 3"}}, "nbformat": 4, "nbformat_minor": 5}
"""


def _proposal() -> dict[str, Any]:
    notebook = json.loads(_OLD)
    notebook["cells"][0]["source"] = ["# Better title\n", "text"]
    notebook["cells"][1]["source"] = "x = 2\nprint(x)"
    notebook["cells"][1]["outputs"] = []
    notebook["cells"][2]["source"] = ["plot(x)"]
    return notebook


def _changes(old: str, new: str) -> list[Change]:
    return list(compare(parse(old), parse(new)).all)


def test_one_accepted_cell_of_three_leaves_every_other_character_as_it_was() -> None:
    new = json.dumps(_proposal(), indent=4)
    changes = compare(parse(_OLD), parse(new))
    assert [change.kind for change in changes.all] == [ChangeKind.CHANGED] * 3
    result = changes.accept({2})
    accepted = parse(new).cells[1].text
    before, _, after = _OLD.partition(parse(_OLD).cells[1].text)
    assert result == before + accepted + after


def test_nothing_accepted_is_the_old_text_and_everything_the_new() -> None:
    new = json.dumps(_proposal())
    changes = compare(parse(_OLD), parse(new))
    assert changes.accept(()) == _OLD
    assert changes.accept({1, 2, 3}) == new


def test_the_form_of_the_json_and_new_ids_are_no_changes() -> None:
    notebook = json.loads(_OLD)
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"])
        cell["id"] += "-again"
    assert _changes(_OLD, json.dumps(notebook)) == []


def test_added_removed_and_moved_cells_are_changes_of_their_own() -> None:
    one, two, three = _code("a", "1"), _code("b", "2"), _code("c", "3")
    new = _code("# new\nimport that", "4")
    assert _changes(_text(one, two), _text(one, new, two)) == [Change(1, ChangeKind.ADDED, None, 1)]
    assert _changes(_text(one, two, three), _text(one, three)) == [Change(1, ChangeKind.REMOVED, 1)]
    moved = compare(parse(_text(one, two, three)), parse(_text(two, three, one)))
    assert list(moved.all) == [Change(1, ChangeKind.MOVED, 0, 2)]
    assert moved.accept(()) == _text(one, two, three)


def test_a_changed_cell_without_ids_is_found_by_its_place_and_content() -> None:
    old = _text(_code("import numpy\nx = 1\ny = 2"), _code("print(x)"), _code("plot()"))
    new = _text(_code("import numpy\nx = 1\ny = 3"), _code("total = 0"), _code("print(x)"), _code("plot()"))
    changes = _changes(old, new)
    assert changes == [Change(1, ChangeKind.CHANGED, 0, 0), Change(2, ChangeKind.ADDED, None, 1)]


def test_an_accepted_new_cell_stands_in_the_blanks_of_its_neighbours() -> None:
    one, two = _code("a", "1"), _code("b", "2")
    old = _text(one, two)
    for new in (_text(_code("n", "3"), one, two), _text(one, _code("n", "3"), two), _text(one, two, _code("n", "3"))):
        changes = compare(parse(old), parse(new))
        assert changes.accept({1}) == new
        edited = changes.accept({1}, {1: "mine\n"})
        assert json.loads(edited)["cells"][changes.all[0].new_index or 0]["source"] == ["mine\n"]


def test_metadata_of_the_notebook_is_a_change_that_can_be_left_out() -> None:
    old, new = _text(_code("a", "1"), kernel="x"), _text(_code("b", "1"), kernel="y")
    changes = compare(parse(old), parse(new))
    assert [change.kind for change in changes.all] == [ChangeKind.CHANGED, ChangeKind.NOTEBOOK]
    assert changes.accept({1}) == _text(_code("b", "1"), kernel="x")
    assert changes.accept({2}) == _text(_code("a", "1"), kernel="y")


def test_a_notebook_with_crlf_keeps_it_in_accepted_cells_too() -> None:
    old = _text(_code("a", "1"), _code("b", "2")).replace("\n", "\r\n")
    new = _text(_code("a", "1"), _code("c\nd", "2"))
    changes = compare(parse(old), parse(new))
    # With an edit, so that it is assembled and not taken whole.
    assert changes.accept({1}, {1: "e\nf"}) == _text(_code("a", "1"), _code("e\nf", "2")).replace("\n", "\r\n")


def test_an_edited_source_keeps_its_form_and_everything_beside_it() -> None:
    cells = parse(_OLD).cells
    assert with_source(cells[0], "new\nlines\n").text == cells[0].text.replace(
        '["# Title\\n", "text"]', '["new\\n", "lines\\n"]'
    )
    assert with_source(cells[1], 'say "é"').text == cells[1].text.replace('"x = 1\\nprint(x)"', '"say \\"é\\""')
    indented = parse(_text(_code("a\nb", "1"))).cells[0]
    assert with_source(indented, "a\nb\nc").text == parse(_text(_code("a\nb\nc", "1"))).cells[0].text


def test_a_number_that_no_change_has_is_an_error_that_says_which_there_are() -> None:
    changes = compare(parse(_OLD), parse(json.dumps(_proposal())))
    with pytest.raises(NoSuchChangeError, match="no change 7; expected 1 to 3"):
        changes.accept({1, 7})


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"cells": {}}', '{"cells": [1]}', '{"cells": [{}],}', '{"cells": [{},]}', '{"cells": []} x',
     '{"cells": [{}', '{"cells": [{} {}]}', '{"a": 1 "cells": []}', '{"cells": [], "cells": 1}', "[" * 100_000],
)  # fmt: skip
def test_a_text_that_is_not_a_notebook_is_refused(text: str) -> None:
    with pytest.raises(NotebookError, match="it is not a notebook"):
        parse(text)


def test_the_changes_are_shown_numbered_with_what_a_user_reads() -> None:
    changes = changes_between("/w/a.ipynb", _OLD, json.dumps(_proposal()))
    assert changes is not None
    assert describe(changes) == (
        "[1] markdown cell 1 is changed\n    @@ -1,2 +1,2 @@\n    -# Title\n    +# Better title\n     text\n"
        "[2] code cell 2 is changed\n    outputs: 1 -> 0\n    @@ -1,2 +1,2 @@\n    -x = 1\n    +x = 2\n     print(x)\n"
        "[3] code cell 3 is changed\n    @@ -0,0 +1 @@\n    +plot(x)"
    )
    assert changes_between("/w/a.py", _OLD, _OLD) is None
    assert changes_between("/w/a.ipynb", "broken", _OLD) is None


_CELLS = st.builds(
    _code,
    st.sampled_from(["", "a", "a\nb", "a\nb\nc", "x = 'é'", "# 😀\n"]),
    st.sampled_from([None, "1", "2", "3", "4", "5"]),
    execution_count=st.sampled_from([None, 1]),
    outputs=st.sampled_from([[], [_OUTPUT]]),
)


def _written(cells: list[dict[str, Any]], indent: int | None, kernel: str, ascii_only: bool) -> str:
    notebook = {"cells": cells, "metadata": {"kernel": kernel}, "nbformat": 4}
    return json.dumps(notebook, indent=indent, ensure_ascii=ascii_only)


_NOTEBOOKS = st.builds(
    _written,
    st.lists(_CELLS, max_size=5),
    st.sampled_from([None, 1, 4]),
    st.sampled_from(["x", "y"]),
    st.booleans(),
)


@given(_NOTEBOOKS, _NOTEBOOKS, st.data())
def test_any_choice_of_changes_is_a_notebook_of_old_and_new_cells(old: str, new: str, data: st.DataObject) -> None:
    before, after = parse(old), parse(new)
    changes = compare(before, after)
    assert changes.accept(()) == old
    if changes.all:
        assert changes.accept({change.number for change in changes.all}) == new
    chosen = data.draw(st.sets(st.sampled_from(changes.all))) if changes.all else set[Change]()
    numbers = {change.number for change in chosen}
    result = changes.accept(numbers)
    parsed = parse(result)
    assert parsed.text == result
    assert json.loads(result)["nbformat"] == 4
    if numbers != {change.number for change in changes.all}:
        touched = {change.old_index for change in chosen}
        kept = [cell.text for index, cell in enumerate(before.cells) if index not in touched]
        texts = [cell.text for cell in parsed.cells]
        # Every undecided cell is there, character for character and in order.
        remaining = iter(texts)
        assert all(any(text == kept_text for text in remaining) for kept_text in kept)
        added = [change for change in chosen if change.kind is ChangeKind.ADDED]
        removed = [change for change in chosen if change.kind is ChangeKind.REMOVED]
        assert len(texts) == len(before.cells) + len(added) - len(removed)


@given(_NOTEBOOKS)
def test_a_parsed_notebook_is_its_text(text: str) -> None:
    notebook = parse(text)
    assert notebook.text == text
    assert [cell.value for cell in notebook.cells] == json.loads(text)["cells"]
    for first, second in itertools.pairwise(notebook.cells):
        assert text.index(first.text) <= text.rindex(second.text)
