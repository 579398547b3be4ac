"""Other models that answer while the session's own is overloaded, or its quota is used up.

A fallback stays for the rest of the turn. Not here: the retries of each model, see
:mod:`isthmus.models.endpoint.retry`.
"""

from collections.abc import Sequence

from isthmus.agent.resources import ModelSource
from isthmus.events import RetryNotice
from isthmus.models.port.base import ChatModel, ModelError, ModelErrorKind

BUSY = frozenset({ModelErrorKind.RATE_LIMIT, ModelErrorKind.OVERLOADED})
"""Kinds of failures for which another model is asked."""


class FallbackModels:
    """The models of one turn: the session's own, then ``names`` (as in ``--model``)."""

    def __init__(self, open_model: ModelSource, names: Sequence[str] = ()) -> None:
        self._open = open_model
        self._names = names
        self._position = 0
        self._current: ChatModel | None = None
        self._problems: list[str] = []

    @property
    def has_more(self) -> bool:
        """Whether another model follows the present one."""
        return self._position < len(self._names)

    async def present(self, own: str | None) -> ChatModel:
        """Return the model to ask now; ``own`` is the session's.

        Raises:
            ModelError: it cannot be opened.
        """
        return self._current if self._current is not None else await self._open(own)

    async def after(self, model: ChatModel, error: ModelError) -> RetryNotice:
        """Go on to the next model that can be opened, and return a notice for the user.

        Raises:
            ModelError: the error itself: another model does not help, or there is none; or one with the reasons why
                the others cannot be used.
        """
        if error.kind not in BUSY:
            raise error
        while self.has_more:
            name = self._names[self._position]
            self._position += 1
            try:
                following = await self._open(name)
            except ModelError as problem:
                self._problems.append(f"{name} cannot be used instead: {problem}")
                continue
            if following is model:
                continue
            self._current = following
            reason = "; ".join([str(error), *self._problems, f"{following.name} is asked instead of {model.name}"])
            return RetryNotice(self._position + 1, len(self._names) + 1, 0.0, reason)
        if not self._problems:
            raise error
        text = ". ".join([str(error), *self._problems])
        raise ModelError(error.kind, text, status=error.status, retry_after=error.retry_after, final=error.final)
