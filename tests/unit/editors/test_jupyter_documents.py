"""Open documents of the browsers of a Jupyter server; tests/peers has real browsers."""

import itertools
import json

import pytest

from isthmus.editors.jupyter_documents import FRONT, MAXIMUM_DOCUMENTS, OpenDocuments, paths_in


def _documents() -> OpenDocuments:
    times = itertools.count(1)
    return OpenDocuments(lambda: float(next(times)))


def _message(*documents: str, current: str | None = None) -> str:
    return json.dumps({"documents": documents, "current": current})


def test_the_time_of_focus_is_when_a_browser_came_to_show_a_document() -> None:
    documents = _documents()
    documents.report("one", _message("a", "b", current="a"))
    documents.report("one", _message("a", "b", "c", current="a"))
    assert documents.all() == {"a": 1.0, "b": 0.0, "c": 0.0}
    documents.report("one", _message("a", "b", current="b"))
    documents.report("one", _message("a", "b"))
    assert documents.all() == {"a": 1.0, "b": 2.0}


def test_documents_are_open_until_the_last_browser_with_them_has_gone() -> None:
    documents = _documents()
    documents.report("one", _message("a", "b", current="a"))
    documents.report("two", _message("a", current="a"))
    assert documents.all() == {"a": 2.0, "b": 0.0}
    documents.closed("one")
    assert documents.all() == {"a": 2.0}
    documents.closed("two")
    documents.closed("two")
    assert documents.all() == {}


@pytest.mark.parametrize("message", ["", "[]", "{}", '{"documents": 1}', '{"documents": [1], "current": {}}'])
def test_a_message_of_another_form_opens_nothing(message: str) -> None:
    documents = _documents()
    documents.report("one", message)
    assert documents.all() == {}


def test_no_more_than_the_maximum_is_kept() -> None:
    documents = _documents()
    documents.report("one", _message(*map(str, range(2 * MAXIMUM_DOCUMENTS))))
    assert len(documents.all()) == MAXIMUM_DOCUMENTS


@pytest.mark.parametrize(
    ("body", "paths"),
    [
        (b'{"reload": ["a", "b/c"]}', ["a", "b/c"]),
        (b'{"reload": []}', []),
        (b'{"reload": [1]}', None),
        (b'{"reload": "a"}', None),
        (b"[]", None),
        (b"\xff", None),
    ],
)
def test_paths_to_read_again_are_a_list_of_texts(body: bytes, paths: list[str] | None) -> None:
    assert paths_in(body) == paths


def test_the_part_in_the_browser_is_where_jupyterlab_looks_for_it() -> None:
    package = json.loads((FRONT / "isthmus" / "package.json").read_text(encoding="utf-8"))
    build = package["jupyterlab"]["_build"]
    assert (package["name"], build["extension"]) == ("isthmus", "./extension")
    # Files in a folder "static" would be kept by browsers for a year.
    assert (FRONT / "isthmus" / build["load"]).is_file()
    assert "static" not in build["load"]
