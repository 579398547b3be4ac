"""Tables of a journal in memory, for tests of its rules without a database."""

import json
from collections import Counter
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

from isthmus.errors import IsthmusError
from isthmus.events import AgentEvent, Prompt, TaskState, event_from_json
from isthmus.journal.sql.rows import DELETED, counted_as, encode_events
from isthmus.journal.sql.task_writes import TaskWrite
from isthmus.journal.sql.write_facts import Facts, Needs, TaskEntry, Waiting
from isthmus.journal.sql.write_group import WriteGroup, exists_already


@dataclass
class GroupTables:
    """Tasks by id, each with its events as numbers and stored forms, and the events that wait in its inbox."""

    tasks: dict[str, TaskEntry] = field(default_factory=dict[str, TaskEntry])
    events: dict[str, list[tuple[int, str]]] = field(default_factory=dict[str, list[tuple[int, str]]])
    inboxes: dict[str, list[Waiting]] = field(default_factory=dict[str, list[Waiting]])
    begun: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """Message id and digest that each task began with; the oldest task comes first."""
    started: int = 0
    """Start tag of the task that left the queue last."""

    def commit(self, writes: Sequence[TaskWrite | IsthmusError], now: float) -> list[Any]:
        """Do a group of writes at the time ``now`` (Unix seconds); return the result of each, or its error.

        As in a database a new task may have an id that another one has; then the writes are done one by one.
        """
        group = self.group(writes, now)
        results = group.results(writes)
        if taken := [entry.task_id for entry in group.entries.values() if entry.new and entry.task_id in self.tasks]:
            if len(writes) > 1:
                return [self.commit([write], now)[0] for write in writes]
            return [exists_already(taken[0])]
        for entry in group.entries.values():
            if not entry.is_changed:
                continue
            if entry.new is not None:
                self.begun[entry.task_id] = (entry.new.message_id, entry.new.digest)
            stored = copy(entry)
            stored.key = stored.key or len(self.tasks) + 1
            stored.new, stored.is_changed, stored.has_later_prompt = None, False, False
            self.tasks[entry.task_id] = stored
        for entry, item, body in group.events:
            self.events.setdefault(entry.task_id, []).append((item.seq or 0, body))
        for waiting in self.inboxes.values():
            waiting[:] = [item for item in waiting if item.number not in group.taken]
        return results

    def group(self, writes: Sequence[TaskWrite | IsthmusError], now: float) -> WriteGroup:
        """Return a group with the facts that writes depend on; nothing is applied or stored yet."""
        return WriteGroup(self._facts(Needs(write for write in writes if not isinstance(write, IsthmusError))), now)

    def put(self, task_id: str, events: Sequence[AgentEvent]) -> None:
        """Put events into a task's inbox."""
        number = sum(map(len, self.inboxes.values()))
        waiting = self.inboxes.setdefault(task_id, [])
        waiting += (Waiting(1000 * number + place, body) for place, body in enumerate(encode_events(events)))
        self.tasks[task_id].inbox += len(events)

    def stored(self, task_id: str) -> list[AgentEvent]:
        """Return the events of a task."""
        return [event_from_json(json.loads(body)) for _, body in self.events.get(task_id, [])]

    def _facts(self, needs: Needs) -> Facts:
        facts = Facts()
        facts.started = self.started
        facts.entries = {task_id: copy(self.tasks[task_id]) for task_id in needs.tasks if task_id in self.tasks}
        facts.inboxes = {task_id: [*self.inboxes.get(task_id, [])] for task_id in needs.inboxes}
        for user, message in needs.messages:
            facts.begun[user, message] = [
                (task_id, digest)
                for task_id, (began, digest) in reversed(self.begun.items())
                if (began, self.tasks[task_id].user) == (message, user) and self._may_be_repeated(task_id)
            ]
        for user in needs.limited:
            tasks = [each for each in self.tasks.values() if each.user == user and not each.parent]
            counted = (each for each in tasks if not TaskState(each.state).is_terminal)
            facts.counts[user] = Counter(counted_as(each.state, each.tag) for each in counted)
        for user in needs.queueing:
            facts.tags[user] = max((each.tag for each in self.tasks.values() if each.user == user), default=0)
        return facts

    def _may_be_repeated(self, task_id: str) -> bool:
        later = self.stored(task_id)[1:]
        is_known = any(isinstance(event, Prompt) for event in later)
        return not is_known and self.tasks[task_id].state not in (TaskState.CANCELED, DELETED)
