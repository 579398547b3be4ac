"""The document docs/reference/acp.md matches the code: its methods, updates, words, limits and errors."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from isthmus import media
from isthmus.acp import connection
from isthmus.acp.front import (
    prompts,
    questions,
    server,
    session,
    session_list,
    session_options,
    tool_calls,
    turn,
    wire_v1,
)
from isthmus.acp.v1 import client_requests, updates
from isthmus.acp.v1.connection import ElicitationCapabilities
from isthmus.acp.v1.sessions import StopReason
from isthmus.agent.approval import grants, outside_reads, private_reads
from isthmus.development_tool import ConfirmationOption, ConfirmationRequest, FileDiff, ToolCall, ToolCallStatus
from isthmus.encoding.codec import to_camel_json
from isthmus.programs.acp.front import AUTH_METHODS
from isthmus.rpc import messages
from support.acp_front import OPTIONS as FRONT
from support.acp_front import front
from support.agents import EchoAgent
from support.engines import engine_on

ROOT = Path(__file__).resolve().parents[3]
DOCUMENT = (ROOT / "docs" / "reference" / "acp.md").read_text(encoding="utf-8")
CODE = "".join(path.read_text(encoding="utf-8") for path in Path(str(server.__file__)).parent.glob("*.py"))
REQUEST = r"(?:initialize|authenticate|logout|(?:session|elicitation|fs|terminal)/[a-z_]+)"
MIB = 1024 * 1024
OPTIONS = (
    grants.PROCEED_ONCE,
    grants.PROCEED_ALWAYS_TOOL,
    grants.PROCEED_ALWAYS_SERVER,
    grants.PROCEED_ALWAYS_PREFIX,
    grants.PROCEED_ALWAYS_COMMAND,
    private_reads.PROCEED_ALWAYS_FILE,
    outside_reads.PROCEED_ALWAYS_FOLDER,
    grants.CANCEL,
)


def part(heading: str) -> str:
    """Return the text of a section."""
    return DOCUMENT.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def table(heading: str) -> Mapping[str, str]:
    """Return the first two columns of a section's tables."""
    return dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|", part(heading), flags=re.MULTILINE))


def words(text: str) -> set[str]:
    """Return what stands in back-ticks."""
    return set(re.findall(r"`([^`]+)`", text))


def is_used(kind: type) -> bool:
    """Return whether the front names a class."""
    return re.search(rf"\b{kind.__name__}\b", CODE) is not None


def edit(*options: str) -> ToolCall:
    """Return a call that asks whether a file may be changed."""
    diff = FileDiff("a", "/w/a", "old", "new")
    asked = ConfirmationRequest(tuple(map(ConfirmationOption, options, options)), file_edit_details=diff)
    return ToolCall("c1", ToolCallStatus.PENDING, "write_file", {}, confirmation_request=asked)


def asked_about(call: ToolCall) -> questions.ClientQuestion:
    """Return the question about a call to a client that shows no forms."""
    return questions.question_of(call, "s1", "/w", ElicitationCapabilities())


def test_the_requests_of_clients_are_those_of_the_code() -> None:
    handled = {"initialize", *wire_v1.REQUESTS}
    documented = words("".join(table("Requests of the client")))
    assert documented == handled | {"session/cancel", "$/cancel_request"}


def test_the_requests_to_clients_are_those_of_the_code() -> None:
    kinds = [kind for kind in vars(client_requests).values() if hasattr(kind, "METHOD")]
    sent = {kind.METHOD for kind in kinds if is_used(kind)}
    documented = part("Questions") + part("Other requests to the client")
    assert {word for word in words(documented) if re.fullmatch(REQUEST, word)} == sent
    assert {kind.METHOD for kind in kinds} - sent <= words(part("What is not offered"))


def test_the_kinds_of_updates_are_those_of_the_code() -> None:
    kinds = [kind for kind in get_args(updates.SessionUpdate) if kind.TAG[1] is not None]
    unsent = {kind.TAG[1] for kind in kinds if not is_used(kind)}
    assert words("".join(table("Updates").values())) >= {kind.TAG[1] for kind in kinds} - unsent
    sentences: list[str] = re.findall(r"^(.*) are not sent\.$", part("Updates"), flags=re.MULTILINE)
    assert words("".join(sentences)) == unsent


@pytest.mark.anyio
async def test_the_capabilities_are_those_of_the_code(workspace: Path) -> None:
    in_process = replace(FRONT, can_delete=True, can_fork=True, auth_methods=AUTH_METHODS)
    async with engine_on(workspace, EchoAgent()) as engine, front(engine, options=in_process) as client:
        greeting = await client.call("initialize", protocolVersion=1)
    (block,) = re.findall(r"```json\n(.*?)```", part("Requests of the client"), flags=re.DOTALL)
    assert json.loads(block) == greeting["agentCapabilities"]


def test_each_stop_reason_is_documented() -> None:
    assert {str(reason) for reason in StopReason} <= words("".join(table("Prompts").values()))


def test_the_kinds_of_options_are_those_of_the_code() -> None:
    question: dict[str, Any] = to_camel_json(asked_about(edit(*OPTIONS)))
    kinds = {option["optionId"]: option["kind"] for option in question["options"]}
    assert {word: kind.strip("`") for row, kind in table("Questions").items() for word in words(row)} == kinds


def test_the_example_of_an_edited_answer_is_one() -> None:
    call = edit(grants.PROCEED_ONCE)
    (block,) = re.findall(r"```json\n(.*?)```", part("Members of our own"), flags=re.DOTALL)
    answer = questions.answer_of(asked_about(call), call, json.loads(block))
    assert answer is not None
    assert answer.file_details is not None
    assert answer.file_details.new_content == "def main():\n    ...\n"


def test_our_own_members_are_those_of_the_code() -> None:
    names = {next(iter(words(row))) for row in re.findall(r"^\| [^|]+ \| (`\w+`) \|", DOCUMENT, flags=re.MULTILINE)}
    own = words("".join(table("Members of our own").values()))
    assert own <= names
    assert {name for name in own if f'"{name}"' in CODE} == own


def test_the_error_codes_are_those_of_the_code() -> None:
    codes = {
        messages.PARSE_ERROR,
        messages.INVALID_REQUEST,
        messages.METHOD_NOT_FOUND,
        messages.INVALID_PARAMS,
        messages.INTERNAL_ERROR,
        messages.SERVER_ERROR,
        server.RESOURCE_NOT_FOUND,
        connection.CANCELLED,
    }
    assert {int(code) for code in table("Errors") if code.startswith("-3")} == codes
    assert turn.AUTH_REQUIRED == messages.SERVER_ERROR


def test_the_limits_are_those_of_the_code() -> None:
    limits = connection.ConnectionLimits()
    assert dict(list(table("Limits and deadlines").items())[1:]) == {
        "bytes of a message": f"{limits.message_bytes / MIB:g} MiB",
        "requests of the client at the same time": f"{limits.open_requests:,}",
        "open sessions of a client": f"{server.MAXIMUM_SESSIONS:,}",
        "blocks of a prompt": f"{prompts.MAXIMUM_BLOCKS:,}",
        "bytes of a file or image in a prompt": f"{media.MAXIMUM_FILE_BYTES:,}",
        "bytes of all files and images in a prompt": f"{media.MAXIMUM_MESSAGE_BYTES:,}",
        "sessions in one answer to `session/list`": str(session_list.PAGE_SESSIONS),
        "turns of a session that are sent again": f"{session.MAXIMUM_TASKS:,}",
        "characters of a tool's output in an update": f"{tool_calls.MAXIMUM_TEXT:,}",
        "characters of a model's name": str(session_options.MAXIMUM_CHARACTERS),
        "an answer to `fs/read_text_file`": f"{server.READ_SECONDS:g} s",
        "an answer to a question": "none: it waits for the user",
    }
