"""The one error that tools raise."""

from isthmus.errors import IsthmusError


class ToolFailure(IsthmusError):
    """A tool cannot do what it was asked; becomes a FAILED call whose text goes to the user and the model.

    ``category`` is the error type of spec 2 (e.g. ``invalid_arguments``, ``file_not_found``, ``outside_workspace``).
    ``for_others`` is what users of a server get in place of a text that is for the user whose machine it is.
    ``for_model`` is what the model gets in place of the text, where it repeats what strangers wrote.
    """

    def __init__(
        self, message: str, category: str, for_others: str | None = None, *, for_model: str | None = None
    ) -> None:
        super().__init__(message)
        self.category = category
        self.for_model = for_model
        self._for_others = for_others

    def told(self, user: str) -> str:
        """Return the text for a user; the empty name is the user whose machine it is."""
        return str(self) if not user or self._for_others is None else self._for_others
