"""The only error that tools raise."""

from isthmus.errors import IsthmusError


class ToolFailure(IsthmusError):
    """A tool call failed; becomes a FAILED call whose text goes to the user and the model.

    ``category`` is the error type of the development-tool extension (e.g. ``invalid_arguments``, ``file_not_found``).
    ``for_others`` replaces the text for users of a server if the text is only for the local user.
    ``for_model`` replaces the text for the model if the text quotes untrusted sources.
    """

    def __init__(
        self, message: str, category: str, for_others: str | None = None, *, for_model: str | None = None
    ) -> None:
        super().__init__(message)
        self.category = category
        self.for_model = for_model
        self._for_others = for_others

    def message_for(self, user: str) -> str:
        """Return the text for a user; the empty name is the local user."""
        return str(self) if not user or self._for_others is None else self._for_others
