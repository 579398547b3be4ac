"""A server that plays a golden transcript: it compares each request with the recorded one, and answers it.

Only messages are played, in their order: ``tasks/get`` is answered at any time with the task's last state, as a
client may poll as often as it likes. The placeholders in a transcript (TASK, CALL-1 ...) are sent unchanged.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from support.transcript import exchanges
from support.wire_server import Answer, WireRequest, WireServer

Json = dict[str, Any]
FREE = frozenset({"messageId", "contextId", "answered_by"})
"""Members whose values a client chooses."""


class ReplayServer(WireServer):
    """A server that plays the lines of a transcript to one client; ``card`` is its agent card."""

    def __init__(self, lines: Sequence[Json], card: Mapping[str, Any]) -> None:
        super().__init__(self._play)
        methods = ("message/stream", "SendStreamingMessage")
        messages = [item for item in exchanges(lines) if item[0].get("method") in methods]
        self._rest = messages
        self._card = card
        self._task: Json = {}
        self._last_id = 0
        self._messages = 0
        self.problems: list[str] = []

    @property
    def is_over(self) -> bool:
        """Whether every message was played."""
        return not self._rest

    def _play(self, request: WireRequest) -> Answer:
        if request.method == "GET":
            interfaces = [{**item, "url": f"{self.base_url}/"} for item in self._card.get("supportedInterfaces", ())]
            return Answer.json({**self._card, "url": f"{self.base_url}/", "supportedInterfaces": interfaces})
        asked = request.json
        if asked["method"] in ("tasks/get", "GetTask"):
            return Answer.json({"jsonrpc": "2.0", "id": asked["id"], "result": self._task})
        if not self._rest:
            return self._refused(asked, "nothing more is recorded")
        expected, answers = self._rest.pop(0)
        received = {"method": asked["method"], "params": without(asked["params"], FREE)}
        if received != without(expected, FREE):
            return self._refused(asked, f"expected {json.dumps(expected)}, received {json.dumps(received)}")
        frames = [self._frame(answer, asked["id"]) for answer in answers if "server" in answer]
        return Answer(200, {"content-type": "text/event-stream"}, tuple(frames))

    def _frame(self, line: Json, request_id: object) -> bytes:
        result = line["server"]
        task = result if result.get("kind") == "task" else result.get("task")
        update = result if result.get("kind") == "status-update" else result.get("statusUpdate")
        if task is not None:
            self._task = task
        elif update is not None:
            self._task = {**self._task, "status": update["status"]}
        head = ""
        if line.get("has_id"):
            self._last_id += 1
            head = f"id: {self._last_id}\n"
        data = json.dumps({"jsonrpc": "2.0", "id": request_id, "result": result})
        # Every message of a real server has an id of its own.
        self._messages += 1
        data = data.replace('"MESSAGE"', f'"MESSAGE-{self._messages}"')
        return f"{head}data: {data}\n\n".encode()

    def _refused(self, asked: Json, problem: str) -> Answer:
        self.problems.append(problem)
        return Answer.json({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32603, "message": problem}})


def without(value: Any, names: frozenset[str]) -> Any:
    """Return the value without members of these names, and without objects that are then empty."""
    if isinstance(value, dict):
        source = cast("Json", value)
        kept = {key: without(item, names) for key, item in source.items() if key not in names}
        return {key: item for key, item in kept.items() if item != {}}
    if isinstance(value, list):
        return [without(item, names) for item in cast("list[Any]", value)]
    return value
