"""A model that is asked nothing."""

from collections.abc import AsyncGenerator

from isthmus.models.port.base import ModelRequest, StreamItem


class Unstreamed:
    """The part of a ChatModel that tests of its description do not need."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Fail the test, since nothing may be asked."""
        raise AssertionError(f"nothing may be asked, but this was: {request}")

    async def aclose(self) -> None:
        """Do nothing."""
