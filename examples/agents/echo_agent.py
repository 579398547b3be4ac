"""An agent in 25 lines that repeats each message word by word, served over A2A with all that Isthmus offers.

Run it:      python examples/agents/echo_agent.py
Talk to it:  isthmus connect URL --token-file FILE   (both are printed)
"""

import asyncio
from collections.abc import AsyncGenerator

from isthmus.a2a import Hosting, serve
from isthmus.agent.session import Session
from isthmus.events import AgentEvent, TextContent


class EchoAgent:
    """An agent that repeats the user's message."""

    async def run(self, session: Session) -> AsyncGenerator[AgentEvent, None]:
        """Send the words one by one."""
        for word in session.prompt.split():
            await asyncio.sleep(0.05)
            yield TextContent("", word + " ")


if __name__ == "__main__":
    serve(EchoAgent(), Hosting(name="Echo", description="Says what it was told."))
