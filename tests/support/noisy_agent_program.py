"""An ACP agent that writes generated lines, most of them wrong in some place, and then ends its turn.

A prompt has a seed and a number of lines, such as ``7 500``. It reads all the time, so that nothing waits for it.
"""

import json
import random
import sys
import threading
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from support import acp_frames

STILL_HERE = "Still here."


class NoisyAgent:
    """One process, with sessions of one folder."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: dict[str, str] = {}

    def run(self) -> None:
        """Answer requests until the input ends."""
        for line in sys.stdin:
            message = json.loads(line)
            number, params = message.get("id"), message.get("params", {})
            match message.get("method"):
                case "initialize":
                    self._answer(number, {"protocolVersion": 1, "agentCapabilities": {}})
                case "session/new":
                    session = f"s{len(self._sessions)}"
                    self._sessions[session] = params["cwd"]
                    self._answer(number, {"sessionId": session})
                case "session/prompt":
                    text = "".join(block.get("text", "") for block in params["prompt"])
                    about = (number, params["sessionId"], *map(int, text.split()[-2:]))
                    threading.Thread(target=self._turn, args=about, daemon=True).start()
                case _:
                    pass  # answers to what it asked

    def _turn(self, number: int, session: str, seed: int, count: int) -> None:
        chance = random.Random(seed)  # noqa: S311 - to be repeated
        for _ in range(count):
            self._write(acp_frames.agent_line(chance, session, self._sessions[session]))
        content = {"type": "text", "text": STILL_HERE}
        update = {"sessionUpdate": "agent_message_chunk", "content": content, "messageId": "last"}
        self._write(_line({"method": "session/update", "params": {"sessionId": session, "update": update}}))
        self._answer(number, {"stopReason": "end_turn"})

    def _answer(self, number: int, result: dict[str, Any]) -> None:
        self._write(_line({"id": number, "result": result}))

    def _write(self, line: bytes) -> None:
        with self._lock:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


if __name__ == "__main__":
    NoisyAgent().run()
