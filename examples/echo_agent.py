"""An agent in 25 lines: it says what it was told, word by word, as an A2A server with everything that Isthmus has.

Run it:      python examples/echo_agent.py
Talk to it:  isthmus connect URL --token-file FILE   (both are printed)
"""

import asyncio
from collections.abc import AsyncGenerator

from isthmus.a2a import Hosting, serve
from isthmus.agent.session import Session
from isthmus.events import AgentEvent, TextContent


class EchoAgent:
    async def run(self, session: Session) -> AsyncGenerator[AgentEvent, None]:
        for word in session.prompt.split():
            await asyncio.sleep(0.05)
            yield TextContent("", word + " ")


if __name__ == "__main__":
    serve(EchoAgent(), Hosting(name="Echo", description="Says what it was told."))
