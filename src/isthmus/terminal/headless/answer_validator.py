"""The validator of answers against a user's JSON Schema (2020-12): in linear time, and without fetching anything.

Patterns are searched by :mod:`isthmus.text.linear_pattern` as JavaScript's, which are JSON Schema's.
Not here: the file of a schema and the text of an answer, see :mod:`isthmus.terminal.headless.answer_schema`.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, cast

from isthmus.text.linear_pattern import LinearPattern, UnsupportedPatternError
from isthmus.text.visible import with_ellipsis

REFERENCES = ("$ref", "$dynamicRef")
MAXIMUM_FOLLOWED = 200_000
"""Maximum number of references that are followed for one answer: some schemas multiply them without end."""
SHOWN_CHARACTERS = 200


class UnusableAnswerSchemaError(ValueError):
    """A schema that is not used; the text says why, after the name of its file."""


class TooManyReferencesError(ValueError):
    """Raised when the check of an answer follows more than MAXIMUM_FOLLOWED references."""


class AnswerValidator:
    """The check of answers against one schema.

    Raises:
        UnusableAnswerSchemaError: it is not a schema, or has something that is not used.
    """

    def __init__(self, schema: Any) -> None:
        self._followed = 0
        self._validator = _validator_of(schema, self._follow)

    def problem(self, value: Any) -> Any:
        """Return the library's first error for an answer's value; None if it fits.

        Raises:
            RecursionError: it is nested too deeply.
            TooManyReferencesError: it cannot be checked within the limit of references.
            TooMuchWorkError: a text takes too long to be searched for a pattern.
        """
        self._followed = 0
        return next(iter(self._validator.iter_errors(value)), None)

    def _follow(self) -> None:
        self._followed += 1
        if self._followed > MAXIMUM_FOLLOWED:
            raise TooManyReferencesError(f"more than {MAXIMUM_FOLLOWED} references")


def _validator_of(schema: Any, follow: Callable[[], None]) -> Any:
    from isthmus.encoding.json_schema import draft_2020_12

    draft = draft_2020_12()  # before all else of the library
    from jsonschema.exceptions import SchemaError
    from referencing import Registry

    if not isinstance(schema, (dict, bool)):
        raise UnusableAnswerSchemaError(f"is not a JSON Schema: it is a {type(cast('object', schema)).__name__}")
    # First, because the library compiles the patterns to check them.
    for part in _parts(cast("object", schema)):
        _check_part(part, is_root=part is schema)
    # An empty registry: the library's own would fetch the targets of references.
    validator = _validators(draft, follow)(schema, registry=cast("Any", Registry)())
    try:
        validator.check_schema(schema)
    except SchemaError as error:
        raise UnusableAnswerSchemaError(f"is not a JSON Schema: {with_ellipsis(error.message, 500)}") from error
    _check_references(schema)
    return validator


def _check_part(part: Mapping[str, Any], *, is_root: bool) -> None:
    if isinstance(part.get("$id"), str) and not is_root:
        raise UnusableAnswerSchemaError('has "$id" inside; leave it out, and refer to "#/$defs/NAME"')
    if isinstance(named := part.get("patternProperties"), dict) and "unevaluatedProperties" in part:
        raise UnusableAnswerSchemaError(
            'has "patternProperties" beside "unevaluatedProperties"; use "additionalProperties"'
        )
    patterns = list(cast("dict[str, Any]", named)) if isinstance(named, dict) else []
    if isinstance(pattern := part.get("pattern"), str):
        patterns.append(pattern)
    for source in patterns:
        try:
            _compiled(source)
        except UnsupportedPatternError as error:
            shown = with_ellipsis(source, SHOWN_CHARACTERS)
            raise UnusableAnswerSchemaError(
                f"has the pattern {shown}, which cannot be searched quickly: {error}"
            ) from error


def _check_references(schema: Any) -> None:
    from referencing import Registry
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    resource: Any = DRAFT202012.create_resource(schema)
    resolver = cast("Any", Registry)().resolver_with_root(resource)
    for part in _parts(schema):
        for name in (part[key] for key in REFERENCES if isinstance(part.get(key), str)):
            shown = with_ellipsis(name, SHOWN_CHARACTERS)
            if not name.startswith("#"):
                raise UnusableAnswerSchemaError(f"refers to {shown}, outside the file; write what it means below $defs")
            try:
                resolver.lookup(name)
            except Unresolvable as error:
                raise UnusableAnswerSchemaError(f"refers to {shown}, which it does not have") from error


def _parts(schema: object) -> Iterator[Mapping[str, Any]]:
    """Yield all objects of a schema, in any order."""
    waiting = [schema]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            part = cast("dict[str, Any]", item)
            yield part
            waiting += part.values()
        elif isinstance(item, list):
            waiting += cast("list[object]", item)


def _validators(draft: Any, follow: Callable[[], None]) -> Any:
    """Return a class of validators like ``draft``, with linear patterns, which calls ``follow`` at each reference."""
    from jsonschema import validators

    checks = {
        "pattern": _check_pattern,
        "patternProperties": _check_pattern_properties,
        "additionalProperties": _check_additional_properties,
        **{name: _counted(draft.VALIDATORS[name], follow) for name in REFERENCES},
    }
    return cast("Any", validators).extend(draft, checks)


def _counted(check: Callable[..., Any], follow: Callable[[], None]) -> Callable[..., Iterator[Any]]:
    def counted(*arguments: Any) -> Iterator[Any]:
        follow()
        yield from check(*arguments) or ()

    return counted


@cache
def _compiled(source: str) -> LinearPattern:
    return LinearPattern(source)


def _check_pattern(_: Any, pattern: str, value: Any, __: Any) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError

    if isinstance(value, str) and not _compiled(pattern).is_in(value):
        yield ValidationError(f"{with_ellipsis(value, SHOWN_CHARACTERS)!r} does not match {pattern!r}")


def _check_pattern_properties(validator: Any, patterns: Mapping[str, Any], value: Any, _: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for name, inner in cast("dict[str, Any]", value).items():
            for pattern in patterns:
                if _compiled(pattern).is_in(name):
                    yield from validator.descend(inner, patterns[pattern], path=name, schema_path=pattern)


def _check_additional_properties(validator: Any, rule: Any, value: Any, schema: Any) -> Iterator[Any]:
    if not isinstance(value, dict):
        return
    from jsonschema.exceptions import ValidationError

    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for name, inner in cast("dict[str, Any]", value).items():
        if name in known or any(_compiled(pattern).is_in(name) for pattern in patterns):
            continue
        if rule is False:
            yield ValidationError(
                f"{with_ellipsis(name, SHOWN_CHARACTERS)!r} is unexpected: no other names are allowed"
            )
        else:
            yield from validator.descend(inner, rule, path=name)
