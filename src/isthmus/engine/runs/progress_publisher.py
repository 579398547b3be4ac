"""Lets followers in other processes see the progress of the calls that run here, as long as there are such followers.

CallProgress is not recorded as an event: only its newest state counts, and it is gone when the work comes to rest.
"""

import asyncio
import logging
from collections.abc import Callable

from isthmus.encoding.compact_json import compact_encoder
from isthmus.engine.followers.feed import THINKING
from isthmus.engine.runs.segment import RunningSegment
from isthmus.events import ToolCallUpdate, event_to_json
from isthmus.journal.port.replicas import CallProgress, Replicas

FOLLOWED_SECONDS = 12.0
"""Time in seconds for which a task counts as followed after a follower let that be known."""
PAUSE_SECONDS = 0.2
"""Minimum time in seconds between two states of a call's progress."""
_JSON = compact_encoder()

log = logging.getLogger(__name__)


class ProgressPublisher:
    """The tasks of this process that are followed elsewhere. ``segment_of`` returns a task's segment here, or None."""

    def __init__(self, replicas: Replicas, segment_of: Callable[[str], RunningSegment | None]) -> None:
        self._replicas = replicas
        self._segment_of = segment_of
        self._until: dict[str, float] = {}
        self._work: dict[str, asyncio.Task[None]] = {}

    def follow(self, task_id: str) -> None:
        """Publish the progress of a task for a while, if it runs here."""
        if self._segment_of(task_id) is None:
            return
        self._until[task_id] = asyncio.get_running_loop().time() + FOLLOWED_SECONDS
        if task_id not in self._work:
            self._work[task_id] = asyncio.create_task(self._publish(task_id), name=f"isthmus-progress-{task_id}")

    async def stop(self) -> None:
        """Publish nothing more."""
        work = list(self._work.values())
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)

    async def _publish(self, task_id: str) -> None:
        try:
            version = 0
            while (segment := self._segment_of(task_id)) is not None and self._is_followed(task_id):
                version, progress = segment.feed.progress_after(version)
                published: list[CallProgress] = []
                for delivery in progress:
                    event = delivery.event
                    call = event.tool_call.tool_call_id if isinstance(event, ToolCallUpdate) else THINKING
                    published.append(
                        CallProgress(call, (segment.lease.epoch << 32) + version, _JSON(event_to_json(event)))
                    )
                if published:
                    self._replicas.publish(task_id, published)
                await asyncio.sleep(PAUSE_SECONDS)
                await segment.feed.changed(FOLLOWED_SECONDS / 4)
            self._replicas.forget(task_id)
        except Exception:  # nothing depends on it but what followers elsewhere see for now
            log.exception("progress of task %s could not be shown to followers in other processes", task_id)
        finally:
            self._until.pop(task_id, None)
            self._work.pop(task_id, None)

    def _is_followed(self, task_id: str) -> bool:
        until = self._until.get(task_id)
        return until is not None and asyncio.get_running_loop().time() < until
