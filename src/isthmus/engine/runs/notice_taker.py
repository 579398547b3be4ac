"""Takes news from other processes to the parts of an engine that they concern."""

from collections.abc import Mapping

from isthmus.engine.followers.task_news import TaskNews
from isthmus.engine.runs.dispatcher import Dispatcher
from isthmus.engine.runs.lease_keeper import LeaseKeeper
from isthmus.engine.runs.progress_publisher import ProgressPublisher
from isthmus.engine.runs.segment import RunningSegment
from isthmus.journal.port.notices import JournalNotice


class NoticeTaker:
    """The receiver of the news for one engine, which works on ``segments``."""

    def __init__(
        self,
        news: TaskNews,
        segments: Mapping[str, RunningSegment],
        progress: ProgressPublisher,
        leases: LeaseKeeper,
        dispatcher: Dispatcher,
    ) -> None:
        self._news = news
        self._segments = segments
        self._progress = progress
        self._leases = leases
        self._dispatcher = dispatcher

    def take(self, notice: JournalNotice) -> None:
        """Take one notice."""
        for task_id in notice.events:
            self._news.notify(task_id)
        for task_id in notice.progress:
            self._news.notify(task_id, has_progress=True)
        for task_id in notice.followed:
            self._progress.follow(task_id)
        named = self._segments if notice.is_all else notice.inboxes
        left = [task_id for task_id in named if task_id in self._segments]
        for task_id in left:
            self._segments[task_id].has_inbox = True
        if left:
            self._leases.look_for_cancellations()
        if notice.is_all:
            self._news.notify_all()
        if notice.is_all or notice.is_queue:
            self._dispatcher.sweep()
