"""The work on a claimed task as an operation that is measured."""

from isthmus.journal.task_rows import ClaimedTask
from isthmus.telemetry import TaskSegment


def segment_of(taken: ClaimedTask, now: float) -> TaskSegment:
    """Return the work that begins at ``now`` (Unix seconds of the journal's clock)."""
    row = taken.row
    since = taken.deliveries[0].at if taken.deliveries else row.updated_at if taken.was_queued else None
    waited = None if since is None else max(0.0, now - since)
    return TaskSegment(row.task_id, row.context_id, row.user, row.parent, waited)
