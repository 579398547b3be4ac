import json
import re
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.encoding.jsonc import JsoncError, parse
from isthmus.encoding.jsonc_edit import remove_member, set_member

COMMENTED = """\
// My settings
{
    "model": { "name": "x" }, /* the model */
    "mcpServers": {
        // The first one
        "first": {
            "command": "node", // with node
            "args": ["a", "b"],
        },
        "second": { "url": "http://localhost/sse" } // the last one
        // "third": {}
    },
    "ui": {}, // nothing yet
}
// the end
"""


def test_a_member_is_added_after_the_last_with_its_indentation_and_comments_stay() -> None:
    changed = set_member(COMMENTED, ["mcpServers", "new"], {"command": "python", "args": ["x"]})
    assert changed == COMMENTED.replace(
        """ } // the last one
""",
        """ }, // the last one
        "new": {
            "command": "python",
            "args": [
                "x"
            ]
        }
""",
    )


def test_a_member_that_is_there_is_replaced_in_its_place() -> None:
    changed = set_member(COMMENTED, ["mcpServers", "first"], {"command": "deno"})
    before, _, rest = COMMENTED.partition('{\n            "command": "node"')
    after = rest.partition('"b"],\n        }')[2]
    assert changed == before + '{\n            "command": "deno"\n        }' + after


def test_behind_a_trailing_comma_the_new_member_has_one_too() -> None:
    changed = set_member(COMMENTED, ["mcp", "excluded"], ["first"])
    inserted = '    "mcp": {\n        "excluded": [\n            "first"\n        ]\n    },\n'
    assert changed == COMMENTED.replace("// nothing yet\n", "// nothing yet\n" + inserted)


def test_a_member_is_removed_with_its_lines_and_nothing_else() -> None:
    changed = remove_member(COMMENTED, ["mcpServers", "first"])
    before, _, rest = COMMENTED.partition('        "first"')
    assert changed == before + rest.partition("        },\n")[2]


def test_with_the_last_member_the_comma_before_it_goes_and_its_comment_stays() -> None:
    changed = remove_member(COMMENTED, ["mcpServers", "second"])
    assert changed == COMMENTED.replace(
        '        },\n        "second": { "url": "http://localhost/sse" } // the last one',
        "        }\n        // the last one",
    )
    assert parse(changed)["mcpServers"] == {"first": {"command": "node", "args": ["a", "b"]}}


def test_an_empty_text_becomes_an_object_and_a_byte_order_mark_stays() -> None:
    assert set_member("", ["a", "b"], 1) == '{\n  "a": {\n    "b": 1\n  }\n}\n'
    assert set_member("\ufeff\r\n", ["a"], 1) == '\ufeff{\r\n  "a": 1\r\n}\r\n'
    assert remove_member(" \n", ["a"]) == " \n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", '{\n  "a": 1\n}'),
        ("{\n}\n", '{\n  "a": 1\n}\n'),
        ("{ // c\n}", '{ // c\n  "a": 1\n}'),
        ('{"b": 2}', '{"b": 2, "a": 1}'),
        ('{"b": 2,}', '{"b": 2, "a": 1,}'),
        ('{"b": 2 // c\n}', '{"b": 2, // c\n"a": 1\n}'),
        ('{"a": 0, "b": 2}', '{"a": 1, "b": 2}'),
        ('{\r\n\t"b": 2\r\n}\r\n', '{\r\n\t"b": 2,\r\n\t"a": 1\r\n}\r\n'),
        ('{\r\n\t"b": 2 // c\r\n}\r\n', '{\r\n\t"b": 2, // c\r\n\t"a": 1\r\n}\r\n'),
        ('\ufeff{"a": null}', '\ufeff{"a": 1}'),
        ('{"a": 0, "\\u0061": 2}', '{"a": 0, "\\u0061": 1}'),
    ],
)
def test_what_is_set_is_written_as_its_surroundings_are(text: str, expected: str) -> None:
    assert set_member(text, ["a"], 1) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1}', "{}"),
        ('{"a": 1,}', "{}"),
        ('{"a": 1, "b": 2}', '{"b": 2}'),
        ('{"b": 2, "a": 1}', '{"b": 2}'),
        ('{"b": 2, /* c */ "a": 1}', '{"b": 2 /* c */}'),
        ('{"b": 2, "a": 1 /* c */, "d": 3}', '{"b": 2, /* c */ "d": 3}'),
        ('{\r\n  "a": 1,\r\n  "b": 2\r\n}', '{\r\n  "b": 2\r\n}'),
        ('{\n  "b": 2, "a": 1,\n  "c": 3\n}', '{\n  "b": 2,\n  "c": 3\n}'),
        ('{"a": 1, "b": 2, "a": 3}', '{"b": 2}'),
        ('{"b": 2}', '{"b": 2}'),
    ],
)
def test_what_is_removed_leaves_its_surroundings(text: str, expected: str) -> None:
    assert remove_member(text, ["a"]) == expected


def test_objects_on_the_way_are_made_also_where_null_stands() -> None:
    assert parse(set_member('{"a": null}', ["a", "b", "c"], [])) == {"a": {"b": {"c": []}}}
    assert remove_member('{"a": null}', ["a", "b"]) == '{"a": null}'


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ('{\n  "a": 1,\n  "b" 2\n}', (3, 7), "Expecting ':' delimiter"),
        ('{\n  "a": [1]\n}', (2, 8), "a: expected an object"),
        ("\ufeff[1]", (1, 1), "expected an object"),
        ("{\n,}", (2, 1), "a comma without a member before it"),
        ('{"a":' * 100_000, (1, 1), "nested more than 100 deep"),
        ('{"a": ' + "1" * 5_000 + "}", (1, 1), "too many digits"),
    ],
)
def test_a_text_that_cannot_be_edited_is_told_with_line_and_column(
    text: str, place: tuple[int, int], message: str
) -> None:
    for edit in (lambda: set_member(text, ["a", "b"], 1), lambda: remove_member(text, ["a", "b"])):
        with pytest.raises(JsoncError, match=message) as caught:
            edit()
        assert message.startswith("nested") or (caught.value.line, caught.value.column) == place


# --- properties ------------------------------------------------------------------------------------------------------

KEYS = st.sampled_from(["a", "b", "mcpServers", "ü ", 'q"', "//", "/*"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text(alphabet='a "\\/*,:{}[]\n\u2028é', max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(KEYS, JSON, max_size=4)
GAPS = st.sampled_from(
    ["", " ", "\n", "\r\n", "\n  ", "\r\n\t", "/* { , */", "// } x\n", " // , y\r\n  ", "\n/*\n*/\n"]
)


@st.composite
def written(draw: st.DrawFn, value: Any) -> str:
    """Return JSON text for `value` in any style that a user may write."""
    gap = lambda: draw(GAPS)  # noqa: E731 - shorter than its name
    if not isinstance(value, dict | list) or not value:
        return json.dumps(value, ensure_ascii=draw(st.booleans()))
    brackets, parts = "[]", list[str]()
    if isinstance(value, dict):
        brackets = "{}"
        for key, item in cast("dict[str, Any]", value).items():
            parts.append(f"{json.dumps(key)}{gap()}:{gap()}{draw(written(item))}")
    else:
        parts += [draw(written(item)) for item in cast("list[Any]", value)]
    body = f"{gap()},{gap()}".join(parts)
    trailing = draw(st.sampled_from(["", ",", " ,"]))
    return f"{brackets[0]}{gap()}{body}{trailing}{gap()}{brackets[1]}"


@st.composite
def texts(draw: st.DrawFn) -> str:
    return draw(st.sampled_from(["", "\ufeff"])) + draw(GAPS) + draw(written(draw(OBJECTS))) + draw(GAPS)


def expected_after(value: Any, path: list[str], new: Any) -> Any:
    """Return `value` with a member set, as plain Python; None if a value on the way is not an object."""
    if not path:
        return new
    if value is not None and not isinstance(value, dict):
        raise TypeError
    found: dict[str, Any] = dict(cast("dict[str, Any]", value or {}))
    found[path[0]] = expected_after(found.get(path[0]), path[1:], new)
    return found


def comments(text: str) -> list[str]:
    found = re.finditer(r'"(?:[^"\\\n]|\\.)*"|(//[^\n]*|/\*.*?\*/)', text, re.DOTALL)
    return [match[1].rstrip("\r") for match in found if match[1] is not None]


@given(text=texts(), path=st.lists(KEYS, min_size=1, max_size=3), new=JSON)
def test_what_is_set_is_read_and_the_rest_stays(text: str, path: list[str], new: Any) -> None:
    value = parse(text)
    try:
        expected = expected_after(value, path, new)
    except TypeError:
        with pytest.raises(JsoncError):
            set_member(text, path, new)
        return
    changed = set_member(text, path, new)
    assert parse(changed) == expected
    assert list(parse(changed)) == list(expected)
    assert parse(set_member(changed, path, new)) == expected


NEW = "*new*"


@given(text=texts(), path=st.lists(KEYS, min_size=1, max_size=3))
def test_every_character_outside_of_the_member_stays(text: str, path: list[str]) -> None:
    old: Any = parse(text)
    for key in path:
        if not isinstance(old, dict):
            return  # It is refused, or null was on the way and is replaced.
        if key not in old:
            # It is added: nothing is removed.
            rest = iter(set_member(text, path, NEW))
            assert all(character in rest for character in text)
            return
        old = cast("dict[str, Any]", old)[key]
    head, _, tail = set_member(text, path, NEW).partition(f'"{NEW}"')
    assert text.startswith(head)
    assert text.endswith(tail)
    assert parse(text[len(head) : len(text) - len(tail)]) == old


@given(text=texts(), key=KEYS)
def test_what_is_added_and_removed_again_leaves_every_comment(text: str, key: str) -> None:
    added = set_member(text, ["fresh", key], {"command": "x"})
    assert comments(added) == comments(text)
    removed = remove_member(added, ["fresh"])
    assert parse(removed) == parse(text)
    assert comments(removed) == comments(text)


@given(text=texts(), path=st.lists(KEYS, min_size=1, max_size=2))
def test_what_is_removed_is_gone_and_the_rest_is_read_as_before(text: str, path: list[str]) -> None:
    value = parse(text)
    inner: Any = value
    for key in path[:-1]:
        inner = cast("dict[str, Any]", inner).get(key)
        if inner is None:
            assert remove_member(text, path) == text
            return
        if not isinstance(inner, dict):
            with pytest.raises(JsoncError):
                remove_member(text, path)
            return
    if path[-1] not in inner:
        assert remove_member(text, path) == text
        return
    del inner[path[-1]]
    assert parse(remove_member(text, path)) == value
