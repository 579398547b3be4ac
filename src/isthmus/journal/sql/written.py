"""The result of a write of a journal, which is awaited until the write is committed."""

import asyncio
from typing import Any, TypeVar

from typing_extensions import override

T = TypeVar("T")


class Written(asyncio.Future[T]):
    """The result of a write. It cannot be cancelled: a cancelled waiter is notified once the write has completed."""

    @override
    def cancel(self, msg: Any = None) -> bool:
        del msg
        return False
