"""A graph of LangGraph, served over A2A: it finds a title for a picture, asks about it in words, and makes a card.

The graph has no checkpointer: its state is in the journal of the server. While it waits for the answer no process has
to run: kill it, start it again, answer from another client.

Run it:      pip install 'isthmus[langgraph]'; OPENAI_API_KEY=... python examples/agents/langgraph_agent.py
Talk to it:  any A2A client that sends images
"""

# LangGraph's own types are partly unknown.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false

import base64
import os
from collections.abc import Mapping
from typing import Any

from langchain_core.messages import AIMessage, convert_to_openai_messages
from langgraph.config import get_stream_writer
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt
from openai import AsyncOpenAI

from isthmus.a2a import Hosting, serve
from isthmus.a2a.frameworks import host
from picture_card import picture_card


class Card(MessagesState):
    """State of the graph: the user's message with the picture is the last one in ``messages``."""

    title: str


def pictures_of(state: Card) -> list[Mapping[str, Any]]:
    """Return the pictures of the user's message."""
    blocks = state["messages"][-1].content_blocks
    return [block for block in blocks if block["type"] == "image" and "base64" in block]


def begin(state: Card) -> str:
    """Return the first node."""
    return "suggest" if pictures_of(state) else "refuse"


def refuse(state: Card) -> Mapping[str, Any]:
    """Ask for what is missing."""
    return {"messages": [AIMessage("Send me a picture, please.")]}


async def suggest(state: Card) -> Mapping[str, Any]:
    """Let the model find a title, and stream it."""
    rule: Any = {"role": "system", "content": "Find a title for the picture. Answer with the title alone."}
    asked: Any = convert_to_openai_messages([rule, state["messages"][-1]])
    model = os.environ.get("OPENAI_MODEL", "gpt-4.1-mini")
    title, write = "", get_stream_writer()
    async for chunk in await AsyncOpenAI().chat.completions.create(model=model, messages=asked, stream=True):
        if chunk.choices and (more := chunk.choices[0].delta.content):
            write(more)
            title += more
    return {"title": title}


def confirm(state: Card) -> Mapping[str, Any]:
    """Ask the user about the title; LangGraph stops here until the answer comes."""
    answer: str = interrupt(f"Shall the title be {state['title']!r}? Say yes, or another title.")
    return {} if answer.strip().lower() == "yes" else {"title": answer.strip()}


def make_card(state: Card) -> Mapping[str, Any]:
    """Send the card: what has bytes and a media type becomes an artifact."""
    (picture, *_) = pictures_of(state)
    card = picture_card(state["title"], f"data:{picture['mime_type']};base64,{picture['base64']}")
    encoded = base64.b64encode(card).decode()
    file = {"type": "file", "mime_type": "image/svg+xml", "base64": encoded, "extras": {"filename": "card.svg"}}
    get_stream_writer()(file)
    return {"messages": [AIMessage(f"The card is made: {state['title']}")]}


graph = StateGraph(Card)
graph.add_node("refuse", refuse)
graph.add_node("suggest", suggest)
graph.add_node("confirm", confirm)
graph.add_node("make_card", make_card)
graph.add_conditional_edges(START, begin, ["suggest", "refuse"])
graph.add_edge("suggest", "confirm")
graph.add_edge("confirm", "make_card")

agent = host(graph)

HOSTING = Hosting(
    name="Titles",
    description="Finds titles for pictures, and makes cards.",
    input_modes=("text/plain", "image/png", "image/jpeg"),
    output_modes=("text/plain", "image/svg+xml"),
)

if __name__ == "__main__":
    serve(agent, HOSTING)
