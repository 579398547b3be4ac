"""An agent written with pydantic-ai whose one tool needs a user's permission, served over A2A; it sees pictures.

A note that came with a picture is sent back as a card, too. While the agent waits for an answer there is no process
that must live: kill it, start it again, answer from another client.

Run it:      pip install isthmus "pydantic-ai-slim[openai]"; OPENAI_API_KEY=... python examples/pydantic_ai_agent.py
Talk to it:  isthmus connect URL --token-file FILE   (both are printed)
"""

import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, AgentRunResultEvent, DeferredToolRequests, DeferredToolResults, RunContext, ToolDenied
from pydantic_ai.messages import (
    BinaryContent,
    FunctionToolResultEvent,
    ModelMessagesTypeAdapter,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ToolCallPart,
)

from isthmus.a2a import Hosting, serve
from isthmus.agent.hosted import ask, decision, is_allowed
from isthmus.agent.session import Session
from isthmus.development_tool import ErrorDetails, GenericDetails, ToolCall, ToolCallStatus, ToolOutput
from isthmus.events import AgentEvent, ArtifactUpdate, TextContent, ToolCallUpdate
from isthmus.internal_events import AgentRecord
from picture_card import picture_card, pictures_of


@dataclass
class Desk:
    """Dependencies of the tools, and the artifacts that a call has made and that are not sent yet."""

    folder: Path
    pictures: Sequence[str]
    made: list[ArtifactUpdate] = field(default_factory=list[ArtifactUpdate])


model = Agent(
    os.environ.get("MODEL", "openai-chat:gpt-4.1-mini"),
    deps_type=Desk,
    output_type=[str, DeferredToolRequests],
    instructions="You keep the user's notes. Save what they want to remember; answer in one sentence.",
    defer_model_check=True,
)


@model.tool(requires_approval=True)
def save_note(context: RunContext[Desk], text: str) -> str:
    """Add a line to the user's notes; with a picture in the message, the user gets a card of both, too."""
    with (context.deps.folder / "notes.txt").open("a", encoding="utf-8") as notes:
        notes.write(text + "\n")
    for number, picture in enumerate(context.deps.pictures):
        context.deps.made.append(picture_card(text, picture, f"{context.tool_call_id}-{number}"))
    return "saved"


class NotesAgent:
    """An agent that continues pydantic-ai's run from the record in the session."""

    async def run(self, session: Session) -> AsyncGenerator[AgentEvent, None]:
        """Ask what has to be asked, or let the model go on with the answers."""
        record = session.record or {}
        questions: Sequence[Mapping[str, Any]] = record.get("questions", [])
        for question in questions:
            # Questions of an earlier task that nobody answered are not asked again in this one.
            if record.get("task") == session.task_id and question["id"] not in session.calls:
                yield ask(question["id"], question["tool"], question["arguments"], GenericDetails(question["text"]))
        if session.waiting:
            return  # the model goes on when all are answered
        results = DeferredToolResults()
        running: dict[str, ToolCall] = {}
        for question in questions:
            item = session.calls.get(question["id"])
            answer, call = decision(session, question["id"]), item.call if item is not None else None
            if call is not None and call.output is not None:
                # The call has run, but the process ended before the model got its result.
                results.calls[question["id"]] = call.output.text
            elif item is None or call is None or item.result is not None:
                # A crash interrupted the call, or the user wrote a message instead of an answer.
                results.approvals[question["id"]] = ToolDenied("It did not run to its end. Ask before you try again.")
            elif answer is not None and is_allowed(answer):
                call = replace(call, status=ToolCallStatus.EXECUTING, confirmation_request=None)
                yield ToolCallUpdate(call)  # on the disk before the tool runs: it never runs twice
                results.approvals[question["id"]] = True
                running[question["id"]] = call
            else:
                error = ErrorDetails("Rejected by the user", "cancelled")
                call = replace(call, status=ToolCallStatus.CANCELLED, error=error, confirmation_request=None)
                yield ToolCallUpdate(call)
                results.approvals[question["id"]] = ToolDenied("The user rejected it.")
        is_answered = any(decision(session, question["id"]) is not None for question in questions)
        pictures = pictures_of(session.message)
        prompt = [session.prompt, *map(BinaryContent.from_data_uri, pictures)]
        desk = Desk(Path(session.workspace), pictures)
        async with model.run_stream_events(
            None if is_answered else prompt,
            message_history=ModelMessagesTypeAdapter.validate_python(record.get("messages", [])),
            deferred_tool_results=results if questions else None,
            deps=desk,
        ) as events:
            async for event in events:
                match event:
                    case PartStartEvent(part=TextPart(text)) | PartDeltaEvent(delta=TextPartDelta(text)) if text:
                        yield TextContent("", text)
                    case FunctionToolResultEvent(part=part) if part.tool_call_id in running:
                        output = ToolOutput(text=str(part.content))
                        call = replace(running.pop(part.tool_call_id), status=ToolCallStatus.SUCCEEDED, output=output)
                        while desk.made:
                            yield desk.made.pop(0)
                        yield ToolCallUpdate(call)  # after the artifacts, which belong to the call
                    case AgentRunResultEvent(result=result):
                        asked = [to_question(part) for part in waiting_calls(result.output)]
                        messages = ModelMessagesTypeAdapter.dump_python(result.all_messages(), mode="json")
                        yield AgentRecord({"messages": messages, "questions": asked, "task": session.task_id})
                        for question in asked:
                            details = GenericDetails(question["text"])
                            yield ask(question["id"], question["tool"], question["arguments"], details)
                    case _:
                        pass


def waiting_calls(output: str | DeferredToolRequests) -> Sequence[ToolCallPart]:
    """Return the calls that need a user's permission."""
    return output.approvals if isinstance(output, DeferredToolRequests) else ()


def to_question(part: ToolCallPart) -> Mapping[str, Any]:
    """Return a question about a call, as the record keeps it."""
    arguments = part.args_as_dict()
    text = f"Save this note: {arguments.get('text', '')}"
    return {"id": part.tool_call_id, "tool": part.tool_name, "arguments": arguments, "text": text}


HOSTING = Hosting(
    name="Notes",
    description="Keeps notes; asks before it writes one.",
    input_modes=("text/plain", "image/png", "image/jpeg"),
    output_modes=("text/plain", "image/svg+xml"),
)

if __name__ == "__main__":
    serve(NotesAgent(), HOSTING)
