"""The refusal of a request or an answer by a hook around the model, which ends the work on a task."""

from isthmus.errors import IsthmusError

STOPPED_BY_HOOK = "stopped_by_hook"
"""Reason of a task that failed because a hook of the settings ended the work."""
REFUSED_BY_HOOK = "refused_by_hook"
"""Reason of a task that failed because a hook refused a request to the model, or its answer."""


class RefusedByHookError(IsthmusError):
    """Refusal by a hook: the model was not asked, or its answer was discarded; ``reason`` is that of the task."""

    def __init__(self, message: str, reason: str = REFUSED_BY_HOOK) -> None:
        super().__init__(message)
        self.reason = reason
