"""Tests of JSON that is remembered by the identity of its object."""

import json
from typing import Any

from isthmus.encoding import remembered_json
from isthmus.encoding.remembered_json import RememberedJson


def test_each_object_is_encoded_once() -> None:
    encoded: list[object] = []

    def encode(value: object) -> str:
        encoded.append(value)
        return json.dumps(value)

    remembered = RememberedJson(encode)
    one: dict[str, Any] = {"a": 1}
    same_content: dict[str, Any] = {"a": 1}
    assert [remembered(one), remembered(one), remembered(same_content)] == ['{"a": 1}'] * 3
    assert encoded == [one, same_content]


def test_the_json_of_many_objects_is_forgotten() -> None:
    remembered = RememberedJson(json.dumps)
    for number in range(2 * remembered_json.MAXIMUM):
        # Each object ends with its round, so that others may have its identity.
        assert remembered({"number": number}) == f'{{"number": {number}}}'
