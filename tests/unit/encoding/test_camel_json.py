"""Messages of protocols with camelCase names and tagged unions, both ways."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeAlias

import pytest

from isthmus.encoding.codec import JsonObject, WireName, from_json, to_camel_json
from isthmus.errors import DecodeError


@dataclass(frozen=True, slots=True)
class Circle:
    TAG: ClassVar = ("kind", "circle")
    line_width: int
    meta: Annotated[JsonObject | None, WireName("_meta")] = None


@dataclass(frozen=True, slots=True)
class Square:
    TAG: ClassVar = ("kind", "square")
    side: float


@dataclass(frozen=True, slots=True)
class OtherShape:
    TAG: ClassVar = ("kind", None)
    kind: str = ""


Shape: TypeAlias = Circle | Square | OtherShape


@dataclass(frozen=True, slots=True)
class Drawing:
    first_shape: Shape
    more_shapes: tuple[Shape, ...] | None = None
    raw: Any = None


@dataclass(frozen=True, slots=True)
class Strict:
    shape: Circle | Square


def test_names_are_written_in_camel_case_with_the_tag_of_each_member() -> None:
    drawing = Drawing(Circle(2, {"some_key": 1}), (Square(1.5), Square(2)), {"snake_case": [None]})
    assert to_camel_json(drawing) == {
        "firstShape": {"kind": "circle", "lineWidth": 2, "_meta": {"some_key": 1}},
        "moreShapes": [{"kind": "square", "side": 1.5}, {"kind": "square", "side": 2}],
        "raw": {"snake_case": [None]},
    }


def test_members_that_are_none_are_left_out_and_empty_ones_are_not() -> None:
    assert to_camel_json(Drawing(Circle(0))) == {"firstShape": {"kind": "circle", "lineWidth": 0}}
    assert to_camel_json(Drawing(Square(1), ())) == {"firstShape": {"kind": "square", "side": 1}, "moreShapes": []}


def test_a_message_is_read_as_it_was_written() -> None:
    drawing = Drawing(Circle(2, {"a": 1}), (Square(1.5),), 3)
    assert from_json(Drawing, to_camel_json(drawing)) == drawing


def test_the_tag_chooses_the_member_and_an_unknown_one_the_member_for_all_others() -> None:
    read = from_json(
        Drawing, {"firstShape": {"kind": "star", "points": 5}, "moreShapes": [{"kind": "circle", "lineWidth": 1}]}
    )
    assert read == Drawing(OtherShape("star"), (Circle(1),))


@pytest.mark.parametrize("tag", [None, 5, [], {"kind": "circle"}, True])
def test_a_tag_that_is_not_a_string_counts_as_unknown(tag: object) -> None:
    with pytest.raises(DecodeError, match=r"Strict\.shape\.kind: expected one of circle, square"):
        from_json(Strict, {"shape": {"kind": tag, "lineWidth": 1}})


def test_a_member_without_a_tag_takes_objects_that_have_none() -> None:
    assert from_json(Drawing, {"firstShape": {}}) == Drawing(OtherShape())


def test_without_a_member_for_others_an_unknown_tag_is_refused_by_name() -> None:
    with pytest.raises(DecodeError, match=r"Strict\.shape\.kind: expected one of circle, square, received .*star"):
        from_json(Strict, {"shape": {"kind": "star"}})


@pytest.mark.parametrize("value", ["circle", 5, [], None])
def test_a_member_of_a_union_that_is_not_an_object_is_refused(value: object) -> None:
    with pytest.raises(DecodeError, match=r"Strict\.shape: expected an object"):
        from_json(Strict, {"shape": value})


def test_an_error_inside_of_a_member_names_its_place() -> None:
    with pytest.raises(DecodeError, match=r"Drawing\.more_shapes\[1\]\.side: expected a number"):
        from_json(Drawing, {"firstShape": {"kind": "x"}, "moreShapes": [{"kind": "star"}, {"kind": "square"}]})


def test_null_stands_for_an_absent_optional_member() -> None:
    read = from_json(Drawing, {"firstShape": {"kind": "circle", "lineWidth": 1, "_meta": None}, "moreShapes": None})
    assert read == Drawing(Circle(1))


def test_a_member_with_a_name_of_its_own_on_the_wire_is_read_by_it() -> None:
    assert from_json(Circle, {"lineWidth": 1, "_meta": {"x": 1}}).meta == {"x": 1}
    with pytest.raises(DecodeError, match=r"Circle\.meta: expected an object"):
        from_json(Circle, {"lineWidth": 1, "_meta": "text"})
