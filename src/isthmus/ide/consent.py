"""The user's answer to an agent's request for permission, and editors that take more than a yes or a no."""

from enum import Enum
from typing import Protocol, runtime_checkable


class Consent(Enum):
    """An answer; the values are the words of ``isthmus ide answer``."""

    NO = "no"
    YES = "yes"
    SESSION = "session"
    """Yes, also to every later question of this agent about the same subject, until it leaves."""

    @staticmethod
    def of(*, yes: bool) -> "Consent":
        """Return the consent of a plain yes or no."""
        return Consent.YES if yes else Consent.NO

    @property
    def is_yes(self) -> bool:
        """Whether it is allowed now."""
        return self is not Consent.NO


@runtime_checkable
class ConsentTaker(Protocol):
    """An editor whose user can say yes for the whole session."""

    async def consent(self, title: str, text: str) -> Consent:
        """Ask as :meth:`isthmus.ide.editor.Editor.confirm` does, and offer a yes for the session too."""
        ...
