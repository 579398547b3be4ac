"""Changes that a user makes to an agent's proposal: the text that is written instead, and what the agent is told.

ACP has no edited answer: the agent believes that its own text was written. Pure.
"""

from isthmus.acp.v1.updates import DiffContent
from isthmus.record import record
from isthmus.text.diff import unified_diff

MAXIMUM_NOTE = 20_000
"""Maximum number of characters of a diff that an agent is told."""


@record
class UserEdit:
    """The user's text for a file, the agent's, and the text before both; None for a new file."""

    path: str
    old_text: str | None
    proposed: str
    text: str

    @property
    def note(self) -> str:
        """The paragraph by which the agent learns of it."""
        diff = unified_diff(self.proposed, self.text, self.path.removeprefix("/"))
        if len(diff) > MAXIMUM_NOTE:
            diff = f"{diff[:MAXIMUM_NOTE]}\n[cut; read the file]\n"
        return (
            f"The user changed your proposal for {self.path} before it was written. The file has the user's text; it"
            f" differs from yours as follows:\n```diff\n{diff}```"
        )


def whole_change(diff: DiffContent, current: str | None) -> DiffContent | None:
    """Return a diff of the whole file, where an agent sends only the passage that it replaces; None if it is unclear.

    ``current`` is the text of the file, None if there is none.
    """
    if current is None:
        return None if diff.old_text else DiffContent(diff.path, diff.new_text)
    if diff.old_text is None:
        return DiffContent(diff.path, diff.new_text, current)
    old, now = diff.old_text.replace("\r\n", "\n"), current.replace("\r\n", "\n")
    if old == now:
        return DiffContent(diff.path, diff.new_text, now)
    if old and now.count(old) == 1:
        return DiffContent(diff.path, now.replace(old, diff.new_text), now)
    return None
