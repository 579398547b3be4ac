"""The reasons why the work on a task broke off, as parts of a sentence for users and models. Pure."""

PROCESS_ENDED = "the agent's process ended"
UNRECORDED = "the journal could not record the work"


def taken_over(silent_seconds: float) -> str:
    """Return the reason of a task that another server took over after this time in seconds."""
    seconds = max(1, round(silent_seconds))
    return f"another server took the task over (the one that ran it was not heard of for {seconds} s)"


def begins_sentence(reason: str) -> str:
    """Return a reason as the beginning of a sentence."""
    return reason[:1].upper() + reason[1:]
