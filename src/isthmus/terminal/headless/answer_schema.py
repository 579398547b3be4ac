"""The JSON Schema that the answer of a headless run must fit, from ``--output-schema``.

The schema is the user's own file. Nothing is fetched for it: a reference to anything outside the file is refused.
"""

import re
from pathlib import Path
from typing import Any

from isthmus.encoding.json_text import JsonError, decode
from isthmus.errors import IsthmusError
from isthmus.record import record
from isthmus.terminal.headless.answer_validator import (
    AnswerValidator,
    TooManyReferencesError,
    UnusableAnswerSchemaError,
)
from isthmus.text.linear_pattern import TooMuchWorkError
from isthmus.text.visible import with_ellipsis

MAXIMUM_BYTES = 256 * 1024
"""Maximum size of a schema in bytes."""
MAXIMUM_ANSWER = 4_000_000
"""Maximum length of an answer in characters."""
REASON_CHARACTERS = 500
_FENCE = re.compile(r"\A```[a-zA-Z]*\s*\n(.*)\n```\Z", re.DOTALL)


class AnswerSchemaError(IsthmusError):
    """The schema cannot be used."""


class UnfitAnswerError(IsthmusError):
    """The answer is not JSON, or does not fit the schema; the text says why."""


@record
class AnswerSchema:
    """A JSON Schema (2020-12) as ``text``, and the ``validator`` for it."""

    text: str
    validator: AnswerValidator

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
            value = decode(text.encode("utf-8", "surrogatepass"))
        except JsonError as error:
            reason = str(error).removeprefix("expected JSON: ")
            raise UnfitAnswerError(f"the answer is not JSON: {with_ellipsis(reason, REASON_CHARACTERS)}") from error
        try:
            problem = self.validator.problem(value)
        except RecursionError as error:
            raise UnfitAnswerError("the answer is nested too deeply to be checked") from error
        except TooManyReferencesError as error:
            raise UnfitAnswerError("the answer cannot be checked: the schema's references multiply") from error
        except TooMuchWorkError as error:
            raise UnfitAnswerError("a text of the answer takes too long to be searched for a pattern") from error
        if problem is not None:
            place = "/".join(str(part) for part in problem.absolute_path) or "the answer"
            raise UnfitAnswerError(f"{place}: {with_ellipsis(problem.message, REASON_CHARACTERS)}")
        return value


def read_answer_schema(path: Path) -> AnswerSchema:
    """Return the schema in a file.

    Raises:
        AnswerSchemaError: the file cannot be read, is not JSON, is not a schema, or refers to something outside it.
    """
    from isthmus.files.atomic import read_regular

    try:
        data = read_regular(path, MAXIMUM_BYTES)
        return AnswerSchema(data.decode("utf-8-sig").strip(), AnswerValidator(decode(data)))
    except OSError as error:
        raise AnswerSchemaError(f"{path} cannot be read: {error.strerror or error}") from error
    except (JsonError, UnicodeDecodeError) as error:
        raise AnswerSchemaError(f"{path} is not JSON: {with_ellipsis(str(error), REASON_CHARACTERS)}") from error
    except RecursionError as error:
        raise AnswerSchemaError(f"{path} is nested too deeply") from error
    except UnusableAnswerSchemaError as error:
        raise AnswerSchemaError(f"{path} {error}") from error
