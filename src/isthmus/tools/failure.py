"""The one error that tools raise."""

from isthmus.errors import IsthmusError


class ToolFailure(IsthmusError):
    """A tool cannot do what it was asked; becomes a FAILED call whose text goes to the user and the model.

    ``category`` is the error type of spec 2 (e.g. ``invalid_arguments``, ``file_not_found``, ``outside_workspace``).
    """

    def __init__(self, message: str, category: str) -> None:
        super().__init__(message)
        self.category = category
