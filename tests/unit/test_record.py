"""A record behaves as the frozen dataclass with slots that it replaces: each form is defined both ways and compared."""

import copy
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar, get_type_hints

import pytest

import isthmus.record
from isthmus.record import record

T = TypeVar("T")
Make = Callable[[type[Any]], type[Any]]


def standard(cls: type[Any]) -> type[Any]:
    return dataclass(frozen=True, slots=True)(cls)


def with_defaults(make: Make) -> list[Any]:
    @make
    class Place:
        """A place."""

        file: str
        line: int = 3
        notes: list[str] = field(default_factory=list[str])

    return [Place("a"), Place("a", 3), Place("b", 4, ["x"]), Place(file="a", notes=["x"]), Place("a", notes=[])]


def with_hidden_fields(make: Make) -> list[Any]:
    @make
    class Secret:
        name: str
        token: str = field(repr=False)
        uses: int = field(default=0, compare=False)
        weight: int = field(default=0, hash=False)
        kept: list[int] = field(init=False, default_factory=list[int], compare=False)
        kind: str = field(init=False, default="secret")

    return [Secret("a", "t"), Secret("a", "t", 5), Secret("a", "u"), Secret("a", "t", weight=1)]


def with_fields_by_name(make: Make) -> list[Any]:
    @make
    class Options:
        limit: int = field(kw_only=True)
        name: str
        wide: bool = field(default=False, kw_only=True)

    return [Options("a", limit=1), Options("a", limit=1, wide=True), Options(name="b", limit=1)]


def with_a_base(make: Make) -> list[Any]:
    @make
    class Event:
        at: float
        kind: str = "event"

        def text(self) -> str:
            return f"{self.kind} at {self.at}"

    @make
    class Ended(Event):
        kind: str = "ended"
        reason: str = ""

    return [Event(1.0), Ended(1.0), Ended(1.0, "ended", "x"), Event(1.0, "ended")]


def with_methods_of_its_own(make: Make) -> list[Any]:
    @make
    class Route:
        parts: tuple[str, ...]
        length: int = field(init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "length", len(self.parts))

        def __repr__(self) -> str:
            return "/".join(self.parts)

        @property
        def first(self) -> str:
            return self.parts[0]

    return [Route(("a", "b")), Route(("a",)), Route(())]


def with_equality_of_its_own(make: Make) -> list[Any]:
    @make
    class Name:
        text: str

        def __eq__(self, other: object) -> bool:
            return str(other).lower() == str(self).lower()

        def __hash__(self) -> int:
            return hash(self.text.lower())

    return [Name("a"), Name("A"), Name("b")]


def without_fields(make: Make) -> list[Any]:
    @make
    class Nothing:
        """Nothing at all."""

    return [Nothing(), Nothing()]


def with_a_type_parameter(make: Make) -> list[Any]:
    @make
    class Box(Generic[T]):
        content: T

    return [Box(1), Box([1])]


FORMS = (
    with_defaults, with_hidden_fields, with_fields_by_name, with_a_base, with_methods_of_its_own,
    with_equality_of_its_own, without_fields, with_a_type_parameter,
)  # fmt: skip


def outcome(action: Callable[[], Any]) -> Any:
    """Return the result of an action, or the type of its exception."""
    try:
        return action()
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_its_instances_look_compare_and_hash_as_those_of_the_dataclass(form: Callable[[Make], list[Any]]) -> None:
    ours, theirs = form(record), form(standard)
    assert [repr(each) for each in ours] == [repr(each) for each in theirs]
    assert [[a == b for b in ours] for a in ours] == [[a == b for b in theirs] for a in theirs]
    assert [outcome(lambda each=each: hash(each)) for each in ours] == [
        outcome(lambda each=each: hash(each)) for each in theirs
    ]
    assert all(a != b for a, b in zip(ours, theirs, strict=True)) or form is with_equality_of_its_own


def description(cls: Any) -> list[Any]:
    """Return what can be asked of a class."""
    parameters = inspect.signature(cls).parameters.values()
    return [
        (cls.__name__, cls.__qualname__, cls.__module__, is_dataclass(cls)),
        [(each.name, each.type, each.init, each.kw_only) for each in fields(cls)],
        (cls.__match_args__, cls.__slots__),
        [(each.name, each.kind, each.default is not inspect.Parameter.empty) for each in parameters],
        get_type_hints(cls.__init__),
    ]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_its_class_says_the_same_of_itself_as_the_dataclass(form: Callable[[Make], list[Any]]) -> None:
    ours, theirs = form(record), form(standard)
    assert [description(type(each)) for each in ours] == [description(type(each)) for each in theirs]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_its_instances_cannot_be_changed_but_copied(form: Callable[[Make], list[Any]]) -> None:
    for each in form(record):
        names = [each.name for each in fields(each)]
        for name in [*names, "something_else"]:
            with pytest.raises(FrozenInstanceError, match=f"cannot assign to field '{name}'"):
                setattr(each, name, 1)
            with pytest.raises(FrozenInstanceError, match=f"cannot delete field '{name}'"):
                delattr(each, name)
        for copied in (copy.copy(each), copy.deepcopy(each)):
            assert copied == each
            assert [getattr(copied, name) for name in names] == [getattr(each, name) for name in names]
        assert replace(each) == each


@record
class Sent:
    text: str
    parts: tuple[int, ...] = ()


def test_a_record_can_be_pickled_replaced_and_matched() -> None:
    sent = Sent("a", (1, 2))
    assert pickle.loads(pickle.dumps(sent)) == sent  # noqa: S301 - our own
    assert replace(sent, text="b") == Sent("b", (1, 2))
    match sent:
        case Sent(text, (first, *_)):
            assert (text, first) == ("a", 1)
        case _:
            pytest.fail("it does not match")


def test_a_class_has_its_own_docstring_or_none() -> None:
    assert [type(each).__doc__ for each in (with_defaults(record)[0], Sent(""))] == ["A place.", None]


def test_two_records_do_not_share_the_default_of_a_factory() -> None:
    first, second, _ = with_defaults(record)[:3]
    first.notes.append("x")
    assert second.notes == []


def test_a_record_that_contains_itself_is_shown() -> None:
    place = with_defaults(record)[0]
    place.notes.append(place)
    assert "notes=[...]" in repr(place)


def test_wrong_fields_and_wrong_arguments_are_errors_as_of_a_dataclass() -> None:
    with pytest.raises(TypeError, match="non-default argument 'b' follows default argument"):

        @record
        class _Order:
            a: int = 0
            b: str  # pyright: ignore[reportGeneralTypeIssues]

    with pytest.raises(ValueError, match="mutable default"):

        @record
        class _Shared:
            a: list[int] = []  # noqa: RUF012

    with pytest.raises(TypeError, match="missing 1 required positional argument: 'text'"):
        Sent()  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError, match="unexpected keyword argument 'more'"):
        Sent("a", more=1)  # pyright: ignore[reportCallIssue]


def test_all_fields_can_be_taken_by_name_alone() -> None:
    @record(kw_only=True)
    class Limits:
        bytes: int
        seconds: float = 1.0

    assert repr(Limits(bytes=3)).endswith("Limits(bytes=3, seconds=1.0)")
    with pytest.raises(TypeError, match="positional argument"):
        Limits(3)  # pyright: ignore[reportCallIssue]


def test_every_frozen_dataclass_of_the_program_is_a_record() -> None:
    form = "\n@dataclass(frozen=True, slots=True)\n"
    sources = Path(isthmus.record.__file__).parent.rglob("*.py")
    assert [source.name for source in sources if form in source.read_text("utf-8")] == []
