"""An agent that writes notes into a file and asks before each; no note is written twice, also after kill -9.

Run it:      python examples/agents/asking_agent.py [PORT]
Talk to it:  isthmus connect URL --token-file FILE   (both are printed)
"""

import asyncio
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

from isthmus.a2a import Hosting, serve
from isthmus.agent.hosted import ask, decision, is_allowed
from isthmus.agent.session import Session
from isthmus.development_tool import GenericDetails, ToolCall, ToolCallStatus
from isthmus.events import AgentEvent, TextContent, ToolCallUpdate


def write_note(file: Path, text: str) -> None:
    """Append a note to a file."""
    with file.open("a", encoding="utf-8") as notes:
        notes.write(f"{text}\n")


class AskingAgent:
    """An agent that notes each message of the user."""

    async def run(self, session: Session) -> AsyncGenerator[AgentEvent, None]:
        """Ask first; when the user has answered, write the note or leave it."""
        text = session.prompt
        call_id = f"note-{session.message.message_id}" if session.message is not None else "note"

        def became(status: ToolCallStatus) -> ToolCallUpdate:
            return ToolCallUpdate(ToolCall(call_id, status, "write_note", {"text": text}))

        answer = decision(session, call_id)
        if answer is None:
            yield ask(call_id, "write_note", {"text": text}, GenericDetails(f"Write '{text}' into notes.txt"))
        elif not is_allowed(answer):
            yield became(ToolCallStatus.CANCELLED)
            yield TextContent("", "Not noted.")
        else:
            known = session.calls[call_id].call
            if known is not None and known.status is ToolCallStatus.PENDING:
                yield became(ToolCallStatus.EXECUTING)  # Stored before the effect.
                await asyncio.to_thread(write_note, Path(session.workspace, "notes.txt"), text)
                yield became(ToolCallStatus.SUCCEEDED)
            elif known is not None and known.status is ToolCallStatus.FAILED:
                yield TextContent("", "I was interrupted; look into notes.txt. ")
            yield TextContent("", f"Noted: {text}")


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    serve(AskingAgent(), Hosting(name="Reminders", description="Notes what it was told."), port=port)
