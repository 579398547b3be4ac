"""A push service on this machine, which reads messages with the keys of one browser; and questions to tell it of."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from isthmus.a2a.push.sender import PushSender
from isthmus.a2a.push.targets import PushRule
from isthmus.a2a.server.users.users import BrowserPush, TokenEntry, UserTable
from isthmus.a2a.server.users.users_file import UsersFile
from isthmus.development_tool import (
    ConfirmationOption,
    ConfirmationRequest,
    ExecuteDetails,
    ToolCall,
    ToolCallStatus,
)
from isthmus.web.push.notifications import Notifications
from isthmus.web.push.sent_questions import AnswerRecord
from support.push_reader import BrowserKeys
from support.wire_server import Answer, WireServer

OPTIONS = (
    ConfirmationOption("proceed_once", "Allow once"),
    ConfirmationOption("proceed_always", "Always allow"),
    ConfirmationOption("cancel", "Reject"),
)


class PushService:
    """A push service that answers with these statuses, then with 201."""

    def __init__(self, *statuses: int) -> None:
        self.statuses: Iterator[int] = iter(statuses)
        self.keys = BrowserKeys()
        self.server = WireServer(lambda _: Answer(next(self.statuses, 201)))

    def subscription(self, language: str = "", *, answers: bool = False) -> BrowserPush:
        given = self.keys.subscription(f"{self.server.base_url}/send/1")
        return BrowserPush(given["endpoint"], given["p256dh"], given["auth"], language, answers)

    def messages(self) -> list[dict[str, Any]]:
        return [json.loads(self.keys.read(request.body)) for request in self.server.requests]


@dataclass
class KnownTasks:
    """Facts about tasks, given by a test."""

    titles: Mapping[str, str] = field(default_factory=dict[str, str])
    waiting: set[str] = field(default_factory=set[str])
    outcomes: dict[str, AnswerRecord] = field(default_factory=dict[str, AnswerRecord])

    async def title(self, task_id: str) -> str:
        return self.titles.get(task_id, "")

    async def waits(self, task_id: str, call_id: str) -> bool:
        return f"{task_id}/{call_id}" in self.waiting

    async def outcome(self, task_id: str, call_id: str) -> AnswerRecord | None:
        return self.outcomes.get(f"{task_id}/{call_id}")


def notifications_in(folder: Path) -> Notifications:
    sender = PushSender(PushRule.of(["127.0.0.1"]), deadline=5)
    return Notifications(UsersFile(folder / "users.json"), sender, folder, waits=(0.01, 0.01))


def add_device(
    notifications: Notifications, user: str = "", expires: float = 10_000_000_000.0, label: str = "Phone"
) -> TokenEntry:
    def change(table: UserTable) -> tuple[UserTable, TokenEntry]:
        changed, entry, _ = table.with_device(user, label, 0.0, expires)
        return changed, entry

    return notifications.users.change(change)


def command_call(name: str, command: str = "npm test", folder: str | None = "/home/me/harbour") -> ToolCall:
    request = ConfirmationRequest(OPTIONS, ExecuteDetails(command, folder))
    arguments = {"command": command}
    return ToolCall(name, ToolCallStatus.PENDING, "run_shell_command", arguments, confirmation_request=request)
