"""The JSON Schema that the answer of a headless run must fit, from ``--output-schema``.

The schema is the user's own file. Nothing is fetched for it: a reference to anything outside the file is refused.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from isthmus.errors import IsthmusError
from isthmus.text.visible import with_ellipsis

MAXIMUM_BYTES = 256 * 1024
"""Maximum size of a schema in bytes."""
MAXIMUM_ANSWER = 4_000_000
"""Maximum length of an answer in characters."""
REASON_CHARACTERS = 500
_FENCE = re.compile(r"\A```[a-zA-Z]*\s*\n(.*)\n```\Z", re.DOTALL)
_REFERENCES = ("$ref", "$dynamicRef")


class AnswerSchemaError(IsthmusError):
    """The schema cannot be used."""


class UnfitAnswerError(IsthmusError):
    """The answer is not JSON, or does not fit the schema; the text says why."""


@dataclass(frozen=True, slots=True)
class AnswerSchema:
    """A JSON Schema (2020-12) as ``text`` and as its decoded ``value``."""

    text: str
    value: Any

    @property
    def instruction(self) -> str:
        """Text for the model that follows the prompt."""
        return (
            "Your last message must be one JSON value that fits this JSON Schema, and nothing else: no other words, no"
            f" code fence.\n{self.text}"
        )

    def value_of(self, answer: str) -> Any:
        """Return the value of an answer, which may stand in a code fence.

        Raises:
            UnfitAnswerError: it is not JSON, or does not fit.
        """
        text = answer.strip()
        if (fenced := _FENCE.match(text)) is not None:
            text = fenced[1]
        if len(text) > MAXIMUM_ANSWER:
            raise UnfitAnswerError(f"the answer has {len(text)} characters; the maximum is {MAXIMUM_ANSWER}")
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise UnfitAnswerError(f"the answer is not JSON: {with_ellipsis(str(error), REASON_CHARACTERS)}") from error
        try:
            problem = next(iter(_validator(self.value).iter_errors(value)), None)
        except RecursionError as error:
            raise UnfitAnswerError("the answer is nested too deeply to be checked") from error
        if problem is not None:
            place = "/".join(str(part) for part in problem.absolute_path) or "the answer"
            raise UnfitAnswerError(f"{place}: {with_ellipsis(problem.message, REASON_CHARACTERS)}")
        return value


def read_answer_schema(path: Path) -> AnswerSchema:
    """Return the schema in a file.

    Raises:
        AnswerSchemaError: the file cannot be read, is not JSON, is not a schema, or refers to something outside it.
    """
    from jsonschema.exceptions import SchemaError

    from isthmus.files.atomic import read_regular

    try:
        text = read_regular(path, MAXIMUM_BYTES).decode("utf-8-sig")
        value = json.loads(text)
        _validator(value).check_schema(value)
    except OSError as error:
        raise AnswerSchemaError(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise AnswerSchemaError(f"{path} is not JSON: {with_ellipsis(str(error), REASON_CHARACTERS)}") from error
    except SchemaError as error:
        raise AnswerSchemaError(f"{path} is not a JSON Schema: {with_ellipsis(error.message, 500)}") from error
    if outside := next((name for name in _references(value) if not name.startswith("#")), None):
        message = f"{path} refers to {outside[:200]}, outside the file; write what it means into the file, below $defs"
        raise AnswerSchemaError(message)
    return AnswerSchema(text.strip(), value)


def _validator(schema: Any) -> Any:
    from isthmus.encoding.json_schema import draft_2020_12

    return draft_2020_12()(schema)


def _references(value: object) -> Iterator[str]:
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Mapping):
            for name, inner in cast("Mapping[str, object]", item).items():
                if name in _REFERENCES and isinstance(inner, str):
                    yield inner
                waiting.append(inner)
        elif isinstance(item, list):
            waiting += cast("list[object]", item)
