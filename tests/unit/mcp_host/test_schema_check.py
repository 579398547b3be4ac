from typing import Any

import pytest

from isthmus.mcp_host.catalogue.schema_check import MAXIMUM_VALUES, SchemaCheck, is_small
from support.wire_server import Answer, WireServer

NUMBERS = {"type": "object", "properties": {"rows": {"type": "array", "items": {"type": "integer"}}}}
LOOP = {"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}


def test_a_value_that_does_not_fit_is_told_with_its_place() -> None:
    assert SchemaCheck(NUMBERS).validation_error({"rows": [1, 2]}) is None
    assert SchemaCheck(NUMBERS).validation_error({"rows": [1, "x"]}) == "rows.1: 'x' is not of type 'integer'"
    assert SchemaCheck({"type": "object"}).validation_error([]) == "[] is not of type 'object'"


def test_a_schema_has_nothing_fetched() -> None:
    with WireServer(lambda request: Answer.json({"type": "string"})) as server:
        assert SchemaCheck({"$ref": f"{server.base_url}/schema"}).validation_error(5) is None
        assert server.requests == []


@pytest.mark.parametrize("schema", [LOOP, {"type": 5}, {"$ref": "#/nowhere"}, {"minimum": "x"}])
def test_a_schema_that_is_none_holds_nothing_back(schema: dict[str, Any]) -> None:
    assert SchemaCheck(schema).validation_error(5) is None


def test_patterns_of_strangers_are_not_matched() -> None:
    slow = {"type": "object", "properties": {"x": {"pattern": "^(a+)+$"}}, "patternProperties": {"^(a+)+$": False}}
    assert SchemaCheck(slow).validation_error({"x": "a" * 40 + "!", "a" * 40 + "!": 1}) is None


@pytest.mark.slow
def test_multiplying_references_and_endless_enumerations_hold_nothing_back() -> None:
    twice = {f"a{i}": {"allOf": [{"$ref": f"#/$defs/a{i + 1}"}] * 2} for i in range(60)}
    assert SchemaCheck({"$ref": "#/$defs/a0", "$defs": {**twice, "a60": {}}}).validation_error({}) is None
    long = {"items": {"enum": [{"x": number} for number in range(20_000)]}}
    assert SchemaCheck(long).validation_error([{"x": 19_999}] * 1_500 + [5]) is None
    assert SchemaCheck(long).validation_error([5]) is not None
    nested: dict[str, Any] = {}
    for _ in range(60):
        nested = {"unevaluatedProperties": nested, "allOf": [nested]}
    assert SchemaCheck(nested).validation_error({"a": 1}) is None


def test_large_values_are_known_before_they_are_walked() -> None:
    assert is_small({"a": [1, {"b": None}], "c": "x" * 1_000_000})
    assert is_small([0] * (MAXIMUM_VALUES - 1))
    assert not is_small([0] * MAXIMUM_VALUES)
    assert not is_small([[0] * 100] * 100)
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert not is_small(deep)
