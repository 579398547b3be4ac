"""Values of frameworks as clients see them: outputs of tools, files, results that are not text, and questions."""

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Any, cast

from pydantic_core import to_jsonable_python

from isthmus.development_tool import (
    ConfirmationDetails,
    ErrorDetails,
    ExecuteDetails,
    FileDiff,
    GenericDetails,
    ToolCallConfirmation,
    ToolOutput,
)
from isthmus.encoding.codec import JsonObject
from isthmus.events import ArtifactPart, ArtifactUpdate

TOOL_FAILED = ErrorDetails("The tool failed. The log of the agent has the details.", "tool_failed")
"""Error of a call whose tool raised an exception that is not meant for users."""
REJECTED = "The user rejected it."
"""Result of a call that its user did not allow, as the model reads it."""
NOT_ANSWERED = "It did not run to its end. The user wrote a message instead: ask before you try again."
"""Result of a call that was given up, as the model reads it."""


def jsonable(value: object) -> Any:
    """Return a value as JSON expresses it; what it cannot express becomes text, bytes become base64."""
    return to_jsonable_python(value, bytes_mode="base64", inf_nan_mode="null", fallback=repr)


def json_object(value: object) -> JsonObject:
    """Return a value as a JSON object: itself if it is one, otherwise under ``result``."""
    plain = jsonable(value)
    return cast(JsonObject, plain) if isinstance(plain, dict) else {"result": plain}


def text_of(value: object) -> str:
    """Return a value as text: itself if it is one, otherwise as JSON."""
    plain = jsonable(value)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def output_of(value: object) -> ToolOutput:
    """Return the output of a tool as clients see it: a mapping or a model as data, all else as text."""
    plain = "" if value is None else jsonable(value)
    if isinstance(plain, dict):
        return ToolOutput(structured_data=cast(JsonObject, plain))
    return ToolOutput(text=text_of(plain))


def file_artifact(data: bytes, media_type: str, filename: str | None = None) -> ArtifactUpdate:
    """Return the artifact of a file. Its id follows from its content, so that a file made twice is one artifact."""
    artifact_id = f"file-{hashlib.sha256(data).hexdigest()[:24]}"
    part = ArtifactPart(raw=base64.b64encode(data).decode(), media_type=media_type, filename=filename)
    return ArtifactUpdate(artifact_id, (part,), name=filename)


def data_artifact(artifact_id: str, value: object) -> ArtifactUpdate:
    """Return the artifact of a result that is not text."""
    return ArtifactUpdate(artifact_id, (ArtifactPart(data=json_object(value)),), name=artifact_id)


def call_text(tool: str, arguments: Mapping[str, Any]) -> str:
    """Return a call as a user reads it in a question."""
    shown = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    return f"{tool}({shown})"


def details_of(tool: str, arguments: Mapping[str, Any], metadata: Mapping[str, Any]) -> ConfirmationDetails:
    """Return the details of a question about a call; ``metadata`` is what the tool's author says of it.

    Members: ``command`` (and ``working_directory``) of a shell command; ``file_path``, ``new_content`` and
    ``old_content`` of an edit, which users can change; or ``description``, a sentence.
    """
    command, path, content = (metadata.get(name) for name in ("command", "file_path", "new_content"))
    if isinstance(command, str):
        folder = metadata.get("working_directory")
        return ExecuteDetails(command, folder if isinstance(folder, str) else None)
    if isinstance(path, str) and isinstance(content, str):
        old = metadata.get("old_content")
        return FileDiff(path.rpartition("/")[2], path, content, old if isinstance(old, str) else None)
    description = metadata.get("description")
    return GenericDetails(description if isinstance(description, str) else call_text(tool, arguments))


def edited_arguments(
    arguments: Mapping[str, Any], details: ConfirmationDetails | None, answer: ToolCallConfirmation
) -> Mapping[str, Any] | None:
    """Return the arguments of a call with the content as the user edited it; None if the user edited nothing.

    The edited argument is the one that has the content that was proposed.

    Raises:
        LookupError: no argument has that content, so the edit cannot be passed on.
    """
    edited = answer.file_details
    if edited is None or not isinstance(details, FileDiff) or edited.new_content == details.new_content:
        return None
    for name, value in arguments.items():
        if value == details.new_content:
            return {**arguments, name: edited.new_content}
    raise LookupError(f"No argument is the proposed content of {details.file_path}.")
