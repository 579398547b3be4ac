"""Prompts of a client as messages to the agent, and slash commands in them. Pure."""

import os
from collections.abc import Sequence
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from isthmus.acp.front.tool_calls import fenced
from isthmus.acp.v1.content import (
    AudioBlock,
    ContentBlock,
    EmbeddedResource,
    ImageBlock,
    ResourceLink,
    TextBlock,
    UnknownBlock,
)
from isthmus.acp.v1.updates import AvailableCommand, CommandInput
from isthmus.client import NO_TEXT
from isthmus.development_tool import SlashCommand
from isthmus.events import MessagePart
from isthmus.record import record
from isthmus.rpc.messages import INVALID_PARAMS, RpcError
from isthmus.slash_commands.tree import SUBCOMMAND, CommandLine, all_commands, read_line

MAXIMUM_BLOCKS = 1000


@record
class ReadPrompt:
    """A prompt: its readable text, and all its parts if it is more than one text."""

    text: str
    parts: tuple[MessagePart, ...] = ()


def read_prompt(blocks: Sequence[ContentBlock], workspace: str) -> ReadPrompt:
    """Return the message of a prompt. A link to a file becomes ``@path``, relative to the workspace inside of it.

    Raises:
        RpcError: the prompt is empty, too long, or has blocks of an unknown type or resources without content.
    """
    if len(blocks) > MAXIMUM_BLOCKS:
        raise RpcError(INVALID_PARAMS, f"prompt: expected at most {MAXIMUM_BLOCKS} blocks, received {len(blocks)}")
    texts: list[str] = []
    files: list[MessagePart] = []
    for index, block in enumerate(blocks):
        match block:
            case TextBlock(text):
                texts.append(text)
            case ResourceLink(uri):
                texts.append(f"@{_escaped(_place(uri, workspace))}")
            case EmbeddedResource(resource) if resource.blob is not None:
                name = PurePosixPath(_path(resource.uri) or "").name or "file"
                files.append(MessagePart(raw=resource.blob, media_type=resource.mime_type, filename=name))
            case EmbeddedResource(resource) if resource.text is not None:
                place = _place(resource.uri, workspace)
                texts.append(f"\n\nContent of {place}:\n{fenced(resource.text)}\n")
            case EmbeddedResource():
                raise RpcError(INVALID_PARAMS, f"prompt[{index}].resource: expected text or blob, received neither")
            case ImageBlock(data, kind) | AudioBlock(data, kind):
                files.append(MessagePart(raw=data, media_type=kind))
            case UnknownBlock(kind):
                expected = "text, image, audio, resource_link or resource"
                raise RpcError(INVALID_PARAMS, f"prompt[{index}].type: expected {expected}, received {kind[:100]!r}")
    text = _joined(texts)
    if not text.strip() and not files:
        raise RpcError(INVALID_PARAMS, "prompt: expected at least one block with content")
    text = text if text.strip() else NO_TEXT
    return ReadPrompt(text, (MessagePart(text=text), *files) if files else ())


def command_of(prompt: ReadPrompt, tree: Sequence[SlashCommand]) -> CommandLine | None:
    """Return the slash command that a prompt names, such as ``/memory add x`` or ``/git:commit``; None if none."""
    return None if prompt.parts else read_line(prompt.text, tree)


def available_commands(tree: Sequence[SlashCommand]) -> tuple[AvailableCommand, ...]:
    """Return a flat list of the commands: ``/memory add`` is ``memory:add``, since names have no spaces."""
    listed: list[AvailableCommand] = []
    for path, command in all_commands(tree):
        if any(argument.name == SUBCOMMAND and argument.is_required for argument in command.arguments):
            continue  # it only groups others
        named = (item.name if item.is_required else f"[{item.name}]" for item in command.arguments)
        hint = " ".join(named)
        description = command.description or path[-1]
        listed.append(AvailableCommand(":".join(path), description, CommandInput(hint) if hint else None))
    return tuple(listed)


def _joined(texts: Sequence[str]) -> str:
    """Join the texts as the user sees them; a reference stands apart from the words around it."""
    joined = ""
    for text in texts:
        touches = bool(joined) and not joined[-1].isspace() and not text[:1].isspace()
        is_reference = text.startswith("@") or joined.rpartition(" ")[2].startswith("@")
        joined += f" {text}" if touches and is_reference else text
    return joined


def _place(uri: str, workspace: str) -> str:
    path = _path(uri, "file", "")
    if path is None:
        return uri
    inside = os.path.relpath(path, workspace) if path.startswith("/") and workspace else path
    return path if inside.startswith("..") else inside


def _path(uri: str, *schemes: str) -> str | None:
    """Return the path of a URI; None if it has another scheme than ``schemes``, or is malformed."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    return unquote(parts.path) if parts.scheme in schemes or not schemes else None


def _escaped(path: str) -> str:
    return path.replace("\\", "\\\\").replace(" ", "\\ ")
