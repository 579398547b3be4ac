import json
from collections.abc import Iterator
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from referencing import Registry

from isthmus.encoding.json_schema import draft_2020_12
from isthmus.mcp_host.catalogue.catalogue import usable_tools
from isthmus.mcp_host.catalogue.listing import ListedTool
from isthmus.mcp_host.catalogue.schema import (
    MAXIMUM_DEPTH,
    UnusableSchemaError,
    full_schema,
    usable_schema,
    without_refused_names,
)


def with_property(schema: Any, **more: Any) -> Any:
    return usable_schema({"type": "object", "properties": {"p": schema}, **more})["properties"]["p"]


@pytest.mark.requirement("MCP-092", "MCP-093", "MCP-095")
def test_schema_and_additional_properties_are_stripped_at_every_depth() -> None:
    assert usable_schema(
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "list": {
                    "type": "array",
                    "items": {"type": "object", "additionalProperties": {"type": "string"}, "properties": {}},
                }
            },
        }
    ) == {
        "type": "object",
        "properties": {"list": {"type": "array", "items": {"type": "object", "properties": {}}}},
    }


@pytest.mark.requirement("MCP-094")
def test_a_default_beside_any_of_is_removed_and_others_stay() -> None:
    assert with_property({"anyOf": [{"type": "string", "default": "x"}, {"type": "null"}], "default": None}) == {
        "anyOf": [{"type": "string", "default": "x"}, {"type": "null"}]
    }


def test_properties_that_are_named_like_keywords_stay() -> None:
    properties = {name: {"type": "string"} for name in ("$schema", "additionalProperties", "default", "$ref", "anyOf")}
    assert usable_schema({"type": "object", "properties": properties})["properties"] == properties


def test_the_values_of_enum_default_and_const_are_left_as_they_are() -> None:
    schema = {"enum": [{"$schema": 1}], "default": {"additionalProperties": 2}, "const": {"$ref": "#/x"}}
    assert with_property(schema) == schema


def test_references_are_put_in_place() -> None:
    definitions = {
        "Point": {"type": "object", "properties": {"x": {"$ref": "#/$defs/Number"}}},
        "Number": {"type": "number"},
    }
    found = with_property({"$ref": "#/$defs/Point", "description": "where"}, **{"$defs": definitions})
    assert found == {"type": "object", "properties": {"x": {"type": "number"}}, "description": "where"}


def test_a_loop_of_references_is_cut() -> None:
    node = {"type": "object", "description": "a node", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    found = with_property({"$ref": "#/$defs/Node"}, **{"$defs": {"Node": node}})
    assert found == {"type": "object", "description": "a node", "properties": {"next": {}}}
    assert "$ref" not in json.dumps(usable_schema({"type": "object", "properties": {"p": {"$ref": "#"}}}))


@pytest.mark.parametrize("reference", ["#/$defs/none", "http://example.org/schema", "other.json", "#/a/b/c"])
def test_a_reference_that_leads_nowhere_allows_anything(reference: str) -> None:
    assert with_property({"$ref": reference, "description": "d"}) == {"description": "d"}


def test_a_schema_that_doubles_at_each_level_is_refused_and_fills_no_memory() -> None:
    definitions = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 8} for n in range(20)}
    with pytest.raises(UnusableSchemaError, match="more than"):
        with_property({"$ref": "#/$defs/d0"}, **{"$defs": definitions})


def test_what_is_too_deep_is_cut() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(200):
        schema = {"type": "object", "properties": {"x": schema}}
    assert json.dumps(usable_schema(schema)).count("properties") <= MAXIMUM_DEPTH + 1


@pytest.mark.parametrize(
    "schema", [None, {}, {"required": True}, {"type": "object", "properties": []}, {"type": ["object", "null"]}]
)
def test_a_schema_without_properties_takes_no_arguments(schema: Any) -> None:
    if schema is None:
        with pytest.raises(UnusableSchemaError, match="NoneType"):
            usable_schema(schema)
    else:
        assert usable_schema(schema) == {"type": "object", "properties": {}}


@pytest.mark.requirement("MCP-085")
@pytest.mark.parametrize("schema", [[], "x", 3, {"type": "string"}, {"type": "object", "properties": "x"}])
def test_what_is_no_object_schema_is_refused_with_a_reason(schema: Any) -> None:
    with pytest.raises(UnusableSchemaError, match="input schema"):
        usable_schema(schema)


def test_required_names_that_do_not_exist_are_left_out() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {}}, "required": ["a", "b", 3]}
    assert usable_schema(schema)["required"] == ["a"]


@pytest.mark.requirement("MCP-007", "MCP-085")
@pytest.mark.parametrize(
    ("given", "usable"),
    [
        ({"type": "array"}, {"type": "array", "items": {}}),
        (
            {"type": "array", "items": [{"type": "string"}], "additionalItems": False},
            {"type": "array", "prefixItems": [{"type": "string"}], "items": {}},
        ),
        ({"type": "string", "required": True}, {"type": "string"}),
        ({"minimum": 3, "exclusiveMinimum": True}, {"exclusiveMinimum": 3}),
        ({"maximum": 3, "exclusiveMaximum": False}, {"maximum": 3}),
        ({"type": "any", "description": "x"}, {"description": "x"}),
        ({"type": ["string", "string", "null"]}, {"type": ["string", "null"]}),
        ({"enum": []}, {}),
        ({"type": "string", "pattern": "("}, {"type": "string"}),
        ({"type": "string", "minLength": "1", "description": None}, {"type": "string"}),
        ({"anyOf": []}, {}),
    ],
)
def test_keywords_that_a_provider_would_refuse_are_mended_or_dropped(given: Any, usable: Any) -> None:
    assert with_property(given) == usable


def test_an_array_by_reference_keeps_the_items_of_its_definition() -> None:
    definitions = {"Names": {"type": "array", "items": {"type": "string"}}}
    found = with_property({"$ref": "#/$defs/Names", "type": "array"}, **{"$defs": definitions})
    assert found == {"type": "array", "items": {"type": "string"}}


def test_a_choice_between_objects_becomes_an_object_with_the_properties_of_all() -> None:
    by_id = {"type": "object", "properties": {"kind": {"const": "id"}, "id": {}}, "required": ["kind", "id"]}
    by_name = {"type": "object", "properties": {"kind": {"const": "name"}, "name": {}}, "required": ["kind", "name"]}
    assert usable_schema({"oneOf": [by_id, by_name]}) == {
        "type": "object",
        "properties": {"kind": {"anyOf": [{"const": "id"}, {"const": "name"}]}, "id": {}, "name": {}},
        "required": ["kind"],
    }
    both = {"type": "object", "properties": {"all": {"type": "boolean"}}, "allOf": [by_id], "not": {"required": ["x"]}}
    assert usable_schema(both) == {
        "type": "object",
        "properties": {"all": {"type": "boolean"}, "kind": {"const": "id"}, "id": {}},
        "required": ["id", "kind"],
    }


def test_optional_parameters_with_names_a_provider_refuses_are_left_out() -> None:
    schema = usable_schema({"type": "object", "properties": {"a": {}, "user name": {}, "x" * 65: {}}})
    assert without_refused_names(schema) == ({"type": "object", "properties": {"a": {}}}, ("user name", "x" * 65))
    with pytest.raises(UnusableSchemaError, match="it requires the parameter 'user name'"):
        without_refused_names({**schema, "required": ["user name"]})


DIALECT = "https://json-schema.org/draft/2020-12/schema"
TREE = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}},
    "additionalProperties": False,
}


def test_in_full_a_schema_keeps_its_dialect_definitions_and_additional_properties() -> None:
    schema: dict[str, Any] = {
        "$schema": DIALECT,
        "type": "object",
        "properties": {
            "tree": {"$ref": "#/$defs/Tree", "description": "where to look"},
            "labels": {"type": "object", "properties": {}, "additionalProperties": {"type": "string"}},
            "parent": {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
        },
        "required": ["tree"],
        "additionalProperties": False,
        "$defs": {"Tree": TREE},
    }
    assert full_schema(schema) == schema


def test_in_full_definitions_of_older_drafts_become_todays_and_their_dialect_goes() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"pair": {"$ref": "#/definitions/Pair"}, "own": {"$ref": "#/definitions/Both"}},
        "definitions": {"Pair": {"type": "array", "items": [{"type": "string"}, {}]}, "Both": {"type": "string"}},
        "$defs": {"Both": {"type": "number"}},
    }
    assert full_schema(schema) == {
        "type": "object",
        "properties": {"pair": {"$ref": "#/$defs/Pair"}, "own": {"type": "string"}},
        "$defs": {
            "Both": {"type": "number"},
            "Pair": {"type": "array", "prefixItems": [{"type": "string"}, {}], "items": {}},
        },
    }


@pytest.mark.parametrize(
    "reference",
    [
        "http://example.org/schema",
        "other.json",
        "#/$defs/none",
        "#anchor",
        "#/a/b",
        "#/$defs/a b",
        "file:///etc/passwd",
    ],
)
def test_in_full_a_reference_that_leads_elsewhere_or_nowhere_allows_anything(reference: str) -> None:
    schema: dict[str, Any] = {
        "properties": {"p": {"$ref": reference, "description": "d"}, "q": {"items": {"$dynamicRef": reference}}},
        "$id": "http://example.org/",
        "$defs": {"a": {"$id": "http://example.org/a", "$ref": reference}},
    }
    assert full_schema(schema) == {
        "type": "object",
        "properties": {"p": {"description": "d"}, "q": {"items": {}}},
        "$defs": {"a": {}},
    }


@pytest.mark.parametrize(
    "definitions",
    [
        {"a": {"$ref": "#/$defs/a"}},
        {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
        {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"anyOf": [{"not": {"$ref": "#/$defs/a"}}]}},
        {"a": {"if": {"$ref": "#/$defs/a"}, "then": {"dependentSchemas": {"x": {"$ref": "#/$defs/a"}}}}},
        {"a": {"oneOf": [{"$ref": "#"}]}},
    ],
)
def test_in_full_a_loop_that_never_reaches_a_part_of_the_value_is_cut(definitions: dict[str, Any]) -> None:
    schema = {"allOf": [{"$ref": "#/$defs/a"}], "properties": {"p": {"$ref": "#/$defs/a"}}, "$defs": definitions}
    _terminates(full_schema(schema))


def _terminates(schema: dict[str, Any]) -> None:
    """Check that a validator that follows every reference ends, and that no reference leaves the schema."""
    value: dict[str, Any] = {name: {"p": {"x": [1]}, "x": {}} for name in ("p", "q", "x", "type", "items", "$ref")}
    draft_2020_12()(schema, registry=cast("Any", Registry)()).is_valid(value)


@pytest.mark.slow
def test_in_full_what_multiplies_is_left_out_and_its_general_form_still_refused() -> None:
    bomb = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 8} for n in range(20)}
    eight = [{name: {"$ref": f"#/$defs/d{n + 1}"} for name in "abcdefgh"} for n in range(20)]
    nested = {f"d{n}": {"properties": properties} for n, properties in enumerate(eight)}
    for definitions in (bomb, nested):
        schema = {"properties": {"p": {"$ref": "#/$defs/d0"}}, "$defs": definitions}
        assert usable_tools((ListedTool("t", "", schema),), None, ())[0] == ()
    unused = {"properties": {"p": {"type": "string"}}, "$defs": bomb}
    (tool,), _ = usable_tools((ListedTool("t", "", unused),), None, ())
    assert tool.full_parameters is None


def test_in_full_parameters_with_refused_names_are_left_out_too() -> None:
    schema: dict[str, Any] = {"properties": {"a": {}, "user name": {}}, "additionalProperties": False}
    (tool,), _ = usable_tools((ListedTool("t", "", schema),), None, ())
    assert tool.full_parameters == {"type": "object", "properties": {"a": {}}, "additionalProperties": False}


_KEYWORDS = st.sampled_from(
    [
        "type",
        "properties",
        "items",
        "anyOf",
        "oneOf",
        "allOf",
        "not",
        "$ref",
        "$defs",
        "default",
        "$schema",
        "x",
        "required",
        "enum",
        "minimum",
        "exclusiveMinimum",
        "minLength",
        "pattern",
        "uniqueItems",
        "prefixItems",
        "dependentRequired",
        "patternProperties",
        "title",
        "dependencies",
        "additionalProperties",
        "definitions",
        "if",
        "dependentSchemas",
        "$id",
        "$dynamicRef",
    ]
)


def test_numbers_that_json_does_not_have_are_left_out() -> None:
    bad = [float("nan"), float("inf"), 10**400]
    for number in bad:
        found = with_property(
            {"type": "number", "minimum": number, "multipleOf": number, "default": number, "x-own": [number, number]}
        )
        assert found == {"type": "number", "default": None, "x-own": [None, None]}
        assert with_property({"maxLength": number, "x-own": number, "enum": [1, number]}) == {
            "x-own": None,
            "enum": [1, None],
        }


def test_a_regular_expression_of_megabytes_is_not_read() -> None:
    assert with_property({"type": "string", "pattern": "a|b" * 1_000_000}) == {"type": "string"}
    assert with_property({"type": "string", "pattern": "a" * 1_000}) == {"type": "string", "pattern": "a" * 1_000}


@pytest.mark.slow
def test_the_schemas_of_a_server_have_a_limit_together() -> None:
    twice = {f"a{i}": {"anyOf": [{"$ref": f"#/$defs/a{i + 1}"}] * 2} for i in range(20)}
    large = {"properties": {"x": {"$ref": "#/$defs/a0"}}, "$defs": {**twice, "a20": {}}}
    many = tuple(ListedTool(f"large-{number}", "", large) for number in range(5_000))
    tools, dropped = usable_tools((ListedTool("small", "", {"properties": {"p": {}}}), *many), None, ())
    assert tools[0].name == "small"
    assert len(tools) < 100
    assert "its server's schemas have more than 200,000 parts together" in dropped[0]
    assert dropped[-1] == f"and {5_001 - len(tools) - 50:,} more"


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["array", "string"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            _KEYWORDS,
            inner | st.sampled_from(["#", "#/$defs/x", "#/definitions/x", "#/properties/x", "http://a/b", "object"]),
            max_size=4,
        )
    ),
    max_leaves=30,
)


@given(_JSON)
def test_any_json_is_made_usable_or_refused(schema: Any) -> None:
    before = json.dumps(schema)
    try:
        found = usable_schema(schema)
    except UnusableSchemaError:
        pass
    else:
        assert found["type"] == "object"
        assert isinstance(found["properties"], dict)
        assert usable_schema(found) == found
        draft_2020_12().check_schema(found)
        _hold_in_full(schema)
    assert json.dumps(schema) == before


def _hold_in_full(schema: Any) -> None:
    try:
        found = full_schema(schema)
    except UnusableSchemaError:
        return
    assert found["type"] == "object"
    assert full_schema(found) == found
    draft_2020_12().check_schema(found)
    for reference in _references(found):
        name = reference.removeprefix("#/$defs/")
        assert reference == "#" or name in found["$defs"], reference
    _terminates(found)


def _references(schema: Any, *, is_schema: bool = True) -> Iterator[str]:
    """Yield the references in a schema, without names of properties and data."""
    if isinstance(schema, list):
        for item in schema:  # pyright: ignore[reportUnknownVariableType] - JSON
            yield from _references(item, is_schema=is_schema)
    elif isinstance(schema, dict):
        for name, value in schema.items():  # pyright: ignore[reportUnknownVariableType] - JSON
            if is_schema and name in ("$ref", "$dynamicRef"):
                yield value
            elif not is_schema or name not in ("default", "enum", "x"):
                is_map = is_schema and name in ("properties", "patternProperties", "$defs", "dependentSchemas")
                yield from _references(value, is_schema=not is_map)
