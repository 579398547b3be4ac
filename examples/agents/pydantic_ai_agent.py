"""An agent written with pydantic-ai whose one tool needs a user's permission, served over A2A; it sees pictures.

A note that came with a picture is sent back as a card, too. While the agent waits for an answer there is no process
that must live: kill it, start it again, answer from another client.

Run it:      pip install 'isthmus[pydantic-ai]'; OPENAI_API_KEY=... python examples/agents/pydantic_ai_agent.py
Talk to it:  isthmus connect URL --token-file FILE   (both are printed)
"""

import os
from pathlib import Path

from pydantic_ai import Agent, BinaryContent, RunContext, ToolReturn, UserPromptPart

from isthmus.a2a import Hosting, serve
from isthmus.a2a.frameworks import host
from picture_card import picture_card

model = Agent(
    os.environ.get("MODEL", "openai-chat:gpt-4.1-mini"),
    deps_type=Path,
    instructions="You keep the user's notes. Save what they want to remember; answer in one sentence.",
    defer_model_check=True,
)


@model.tool(requires_approval=True)
def save_note(context: RunContext[Path], text: str) -> ToolReturn[str]:
    """Add a line to the user's notes; with a picture in the message, the user gets a card of both, too."""
    with (context.deps / "notes.txt").open("a", encoding="utf-8") as notes:
        notes.write(text + "\n")
    asked = [part for message in context.messages for part in message.parts if isinstance(part, UserPromptPart)]
    pictures = [item for item in asked[-1].content if isinstance(item, BinaryContent)]
    cards = [picture_card(text, picture.data_uri) for picture in pictures]
    files = [BinaryContent(card, media_type="image/svg+xml", identifier="card.svg") for card in cards]
    return ToolReturn("saved", metadata=files)  # files in the metadata are for the user, not for the model


agent = host(model, deps=lambda session: Path(session.workspace))

HOSTING = Hosting(
    name="Notes",
    description="Keeps notes; asks before it writes one.",
    input_modes=("text/plain", "image/png", "image/jpeg"),
    output_modes=("text/plain", "image/svg+xml"),
)

if __name__ == "__main__":
    serve(agent, HOSTING)
