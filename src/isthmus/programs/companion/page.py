"""The workbench of ``isthmus companion``: its editor without a screen, its page, and the server of the page.

The page is served on the loopback interface at a free port. The companion's protocols know nothing of it.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from importlib import resources
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from isthmus.editors.headless import UNAVAILABLE, HeadlessEditor
from isthmus.encoding.codec import JsonObject
from isthmus.ide.control.page_commands import PAGE_COMMANDS, PAGE_PERMISSIONS
from isthmus.ide.editor import Capability, EditorError
from isthmus.ide.options import HttpServerLimits
from isthmus.network import loopback

if TYPE_CHECKING:
    from isthmus.ide.running.host import CompanionHost

STARTING_SECONDS: Final = 0.1
"""Time in seconds after which a companion that starts is looked at again."""
LOOK_SECONDS: Final = 2.0
"""Maximum time in seconds between looks at what the page shows, while a page is open."""
_UNAVAILABLE: Final[Mapping[Capability, str]] = MappingProxyType(
    {**UNAVAILABLE, Capability.CONFIRM: "its page shows questions; answer there or with `isthmus ide answer`"}
)


def page_is_built() -> bool:
    """Return whether this installation has the page."""
    return (resources.files("isthmus.web") / "ui" / "index.html").is_file()


def require_page() -> None:
    """Check that this installation has the page.

    Raises:
        BadInputError: it has not.
    """
    if not page_is_built():
        from isthmus.programs.setup.setup import BadInputError
        from isthmus.web.http.bundle import MISSING

        raise BadInputError(MISSING)


class WebEditor(HeadlessEditor):
    """A headless editor that is shown in the workbench: its reviews, and the files that are open in it.

    ``link`` returns a link that lets one browser in.
    """

    shows_files = True

    def __init__(self, folders: Sequence[str], *, is_trusted: bool | None = None) -> None:
        super().__init__(folders, is_trusted=is_trusted, name="web", unavailable=_UNAVAILABLE)
        self.link: Callable[[], str] | None = None

    def review_page(self) -> str:
        """Return a link to the page that works once.

        Raises:
            EditorError: the page is not served.
        """
        if self.link is None:
            raise EditorError("the workbench is not served; start the companion again")
        return self.link()


class HostedCompanion:
    """The companion of a host in this process, as :class:`isthmus.web.companions.reviews.Companions`."""

    def __init__(self, host: "CompanionHost") -> None:
        self._host = host
        self._id = str(os.getpid())

    async def waiting(self) -> list[JsonObject]:
        """Return what waits at the companion; nothing before it is ready and while it ends."""
        from isthmus.web.companions.reviews import CompanionRefusedError

        try:
            return [{**await self.ask(self._id, "waiting", {}), "id": self._id}]
        except CompanionRefusedError:
            return []

    async def changes(self) -> AsyncGenerator[None]:
        """Yield at once, and whenever something at the companion may have changed."""
        while True:
            found = self._host.companion
            if found is None:
                await asyncio.sleep(STARTING_SECONDS)
                continue
            count = found.changes.number
            yield
            # Files are written without notice.
            await found.changes.wait(count, LOOK_SECONDS)

    async def ask(self, companion: str, command: str, arguments: Mapping[str, object]) -> JsonObject:
        """Return the answer of the companion to a command of a page.

        Raises:
            NoSuchCompanionError: the id is another one's.
            CompanionRefusedError: it refuses, or is not ready yet.
        """
        from isthmus.errors import IsthmusError
        from isthmus.web.companions.reviews import CompanionRefusedError, NoSuchCompanionError

        if companion != self._id:
            raise NoSuchCompanionError("this companion has ended; its agents ask in their own terminals")
        found, control = self._host.companion, self._host.control
        if found is None or control is None:
            raise CompanionRefusedError("the companion is not ready yet")
        try:
            if command in PAGE_PERMISSIONS:
                browser = arguments.get("browser")
                await control.refuse_browser(browser if isinstance(browser, int) else None)
            return await PAGE_COMMANDS[command](found, dict(arguments))
        except IsthmusError as error:
            raise CompanionRefusedError(str(error)) from error


@contextlib.asynccontextmanager
async def serving_page(host: "CompanionHost", editor: WebEditor) -> AsyncGenerator[None]:
    """Serve the page of a companion while the block runs; the editor then has links to it.

    Raises:
        EditorError: no port can be listened on.
    """
    from isthmus.listeners.close_delimited import CloseDelimitedProtocol
    from isthmus.listeners.http_server import HttpServer
    from isthmus.web.companion_site import CompanionSite

    try:
        listener = loopback.bind(0)
    except OSError as error:
        raise EditorError(f"the workbench cannot be served: {error}") from error
    try:
        url = f"http://{loopback.ADDRESS}:{listener.getsockname()[1]}"
        site = CompanionSite(HostedCompanion(host), url)
        server = HttpServer(
            site, listener, name="the workbench", protocol=CloseDelimitedProtocol, limits=HttpServerLimits()
        )
        serving = asyncio.create_task(server.run_until_stopped())
        await server.listening.wait()
        editor.link = site.link
        try:
            yield
        finally:
            editor.link = None
            server.stop()
            await asyncio.gather(serving, return_exceptions=True)
    finally:
        listener.close()
