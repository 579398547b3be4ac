"""An agent written with LangGraph: it finds a title for a picture, asks about it in words, and makes a card of both.

LangGraph keeps how far each task came in checkpoints of its own, in a file. While the agent waits for the answer
no process has to run: kill it, start it again, answer from another client.

Run it:      pip install isthmus langgraph langgraph-checkpoint-sqlite
             OPENAI_API_KEY=... python examples/langgraph_agent.py
Talk to it:  any A2A client that sends images
"""

# LangGraph's own types are partly unknown.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

import os
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.config import get_stream_writer
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt
from openai import AsyncOpenAI

from isthmus.a2a import Hosting, serve
from isthmus.agent.session import Session
from isthmus.events import AgentEvent, AgentMessage, StateChange, TaskState, TextContent
from picture_card import picture_card, pictures_of


class Card(TypedDict):
    """State of a task that LangGraph keeps; ``message_id`` is that of the last message that the graph has taken."""

    message_id: str
    wish: str
    picture: str
    title: str


async def suggest(state: Card) -> Mapping[str, str]:
    """Let the model find a title, and stream it."""
    chunks = await AsyncOpenAI().chat.completions.create(
        model=os.environ.get("OPENAI_MODEL", "gpt-4.1-mini"),
        messages=[
            {"role": "system", "content": "Find a title for the picture. Answer with the title alone."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": state["wish"]},
                    {"type": "image_url", "image_url": {"url": state["picture"]}},
                ],
            },
        ],
        stream=True,
    )
    title, write = "", get_stream_writer()
    async for chunk in chunks:
        if chunk.choices and (more := chunk.choices[0].delta.content):
            write(more)
            title += more
    return {"title": title}


def confirm(state: Card) -> Mapping[str, str]:
    """Ask the user about the title; LangGraph stops here until the answer comes."""
    answer: str = interrupt(f"Shall the title be {state['title']!r}? Say yes, or another title.")
    return {} if answer.strip().lower() == "yes" else {"title": answer.strip()}


GRAPH = StateGraph(Card)
GRAPH.add_node("suggest", suggest)
GRAPH.add_node("confirm", confirm)
GRAPH.add_edge(START, "suggest")
GRAPH.add_edge("suggest", "confirm")


class TitleAgent:
    """An agent that runs the graph; each run continues from the task's checkpoint, perhaps of another process."""

    def __init__(self, checkpoints: Path) -> None:
        self._checkpoints = checkpoints

    async def run(self, session: Session) -> AsyncGenerator[AgentEvent, None]:
        """Run the graph until it has made the card or waits for an answer."""
        if (message := session.message) is None:
            return  # a slash command, of which this agent has none
        thread = RunnableConfig(configurable={"thread_id": session.task_id})
        async with AsyncSqliteSaver.from_conn_string(str(self._checkpoints)) as saver:
            graph = GRAPH.compile(checkpointer=saver)
            at = await graph.aget_state(thread)
            if not at.values:
                if not (pictures := pictures_of(message)):
                    yield AgentMessage("", "Send me a picture, please.")
                    return
                given = Card(message_id=message.message_id, wish=message.text, picture=pictures[0], title="")
            elif at.interrupts and at.values["message_id"] != message.message_id:
                given = Command(resume=message.text, update={"message_id": message.message_id})
            else:
                given = None  # The process ended meanwhile: continue after the last completed node.
            # "sync": a checkpoint is in the file before the next node begins.
            async for more in graph.astream(given, thread, stream_mode="custom", durability="sync"):
                yield TextContent("", str(more))
            at = await graph.aget_state(thread)
        if at.interrupts:
            yield AgentMessage("", at.interrupts[0].value)
            yield StateChange(TaskState.INPUT_REQUIRED)
        else:
            yield picture_card(at.values["title"], at.values["picture"])
            yield AgentMessage("", f"The card is made: {at.values['title']}")


HOSTING = Hosting(
    name="Titles",
    description="Finds titles for pictures, and makes cards.",
    input_modes=("text/plain", "image/png", "image/jpeg"),
    output_modes=("text/plain", "image/svg+xml"),
)

if __name__ == "__main__":
    serve(TitleAgent(Path("titles.sqlite")), HOSTING)
