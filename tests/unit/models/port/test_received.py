"""Arguments of tool calls as models write them."""

import pytest

from isthmus.models.port.received import tool_arguments


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": NaN}', "NaN is not a JSON number"),
        ('{"a": [-Infinity]}', "-Infinity is not a JSON number"),
        ('{"a": 1e999}', "the number 1e999 is too large"),
        ('{"a": ' + "1" * 5000 + "}", "Exceeds the limit"),
        ('{"a": ', "Expecting value"),
    ],
)
def test_numbers_that_json_lacks_are_refused_with_a_reason_for_the_model(text: str, reason: str) -> None:
    arguments, refused = tool_arguments(text)
    assert not arguments
    assert f"the arguments are not valid JSON ({reason}" in str(refused)


def test_arguments_are_read_as_they_are() -> None:
    assert tool_arguments(' {"a": 1.5, "b": "\\ud800"} ') == ({"a": 1.5, "b": "\ud800"}, None)
    assert tool_arguments("  ") == ({}, None)
