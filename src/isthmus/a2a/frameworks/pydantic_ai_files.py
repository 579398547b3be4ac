"""Files in the results of pydantic-ai's tools."""

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from pydantic_ai import ToolReturn
from pydantic_ai.messages import BinaryContent

from isthmus.a2a.frameworks.shown import file_artifact
from isthmus.events import ArtifactUpdate


def artifact_of(file: BinaryContent) -> ArtifactUpdate:
    """Return the artifact of a file; its name is its identifier, if it was given one."""
    named: object = getattr(file, "_identifier", None)  # `identifier` is a digest if there is none
    return file_artifact(file.data, file.media_type, named if isinstance(named, str) else None)


def files_of(result: object) -> Iterator[BinaryContent]:
    """Yield the files in a tool's result: those that the model gets, and those in the metadata, for the user alone."""
    match result:
        case BinaryContent():
            yield result
        case ToolReturn():
            yield from files_of(result.return_value)
            yield from files_of(result.content)
            yield from files_of(cast(object, result.metadata))
        case Mapping():
            for value in cast("Mapping[object, object]", result).values():
                yield from files_of(value)
        case list() | tuple():
            for value in cast("Sequence[object]", result):
                yield from files_of(value)
        case _:
            pass


def without_files(result: object) -> object:
    """Return a tool's result with a word in place of each file, as the user reads it."""
    match result:
        case BinaryContent():
            return f"[{result.media_type}]"
        case ToolReturn():
            return without_files(result.return_value)
        case Mapping():
            return {key: without_files(value) for key, value in cast("Mapping[object, object]", result).items()}
        case list() | tuple():
            return [without_files(value) for value in cast("Sequence[object]", result)]
        case _:
            return result
