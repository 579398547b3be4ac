"""One login of a user to a server: discovers, shows the page, receives the answer, stores the tokens, connects.

A login waits for some minutes even without a reader of its messages: the browser may be on another machine, and the
user may paste its final address later. The page is named before a browser opens it. Not here: receiving the redirect,
see :mod:`isthmus.mcp_host.oauth.redirect`, and renewing a login, see :mod:`isthmus.mcp_host.oauth.stored_login`.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit

from isthmus.mcp_host.config.server_config import HttpEndpoint
from isthmus.mcp_host.connection.errors import OAuthError
from isthmus.mcp_host.oauth.challenge import challenge_of
from isthmus.mcp_host.oauth.client import client_for
from isthmus.mcp_host.oauth.discovery import Found, discover
from isthmus.mcp_host.oauth.http import place
from isthmus.mcp_host.oauth.login_store import LoginStore
from isthmus.mcp_host.oauth.messages import (
    Challenge,
    TokenRefusedError,
    Verifier,
    authenticated,
    authorization_url,
    code_form,
    granted,
    require_redirect,
    union,
)
from isthmus.mcp_host.oauth.redirect import CATEGORY, RedirectReceiver, receiving
from isthmus.mcp_host.oauth.store import Registration, StoredToken
from isthmus.mcp_host.oauth.stored_login import http_of
from isthmus.record import record
from isthmus.runtime.threads import in_thread
from isthmus.text.units import show_count
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.servers import ServerState

if TYPE_CHECKING:
    from isthmus.mcp_host.connection.connection import ServerConnection

LOGIN_SECONDS = 300.0
"""Maximum time in seconds for the user to log in."""
ANSWER_SECONDS = 10.0
_LOG = logging.getLogger("isthmus.mcp")

Paste: TypeAlias = Callable[[], Awaitable[str]]
"""Function that returns the text that the user pastes: the final address of the browser, or the code in it.

It is called again after an invalid text, and cancelled when the redirect arrives. It raises EOFError if the user will
not paste a text."""
OpenBrowser: TypeAlias = Callable[[str], bool | None]
"""Function that opens a page for the user; returns False if there is no browser on this machine."""


@record
class UserPrompts:
    """Ways to reach the user. ``open_browser`` is None without a browser, ``paste`` if no text can be pasted."""

    open_browser: OpenBrowser | None = None
    paste: Paste | None = None


class Login:
    """One login, from its creation until it succeeds, fails or takes too long."""

    def __init__(
        self, connection: "ServerConnection", endpoint: HttpEndpoint, logins: LoginStore, user: UserPrompts
    ) -> None:
        self._connection = connection
        self._endpoint = endpoint
        self._http = http_of(connection.config, endpoint.url)
        self._logins = logins
        self._user = user
        self._receiver: RedirectReceiver | None = None
        self._lines: list[str] = []
        self._taken = 0
        self._moved = asyncio.Event()
        self._is_left = False
        """Whether `follow` has returned while the login waits; it is called again when the user pastes a text."""
        self._task = asyncio.create_task(self._run(), name=f"login to {connection.config.name}")
        self._task.add_done_callback(self._ended)

    @property
    def is_over(self) -> bool:
        """Whether the login has ended, successfully or not."""
        return self._task.done()

    def paste(self, text: str) -> None:
        """Accept the text that the user pasted.

        Raises:
            ToolFailure: the text does not answer this login.
        """
        try:
            if self._receiver is None:
                raise OAuthError("this login does not wait for an answer yet")
            self._receiver.paste(text)
        except OAuthError as error:
            raise ToolFailure(str(error), CATEGORY) from error
        self._is_left = False

    async def follow(self, *, from_now: bool = False) -> AsyncGenerator[str, None]:
        """Yield messages about the login until it ends, or until it waits for an address that the user must paste.

        Raises:
            ToolFailure: the login failed.
        """
        at = len(self._lines) if from_now else 0
        while True:
            while at < len(self._lines):
                yield self._lines[at]
                at += 1
                self._taken = max(self._taken, at)
                self._moved.set()
            if self._task.done():
                self._task.result()
                return
            if self._is_left:
                return
            self._moved.clear()
            await self._moved.wait()

    async def aclose(self) -> None:
        """Cancel the login."""
        self._task.cancel()
        await asyncio.wait({self._task}, timeout=2)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._moved.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            _LOG.info("the login to MCP server %s ended: %s", self._connection.config.name, error)

    def _tell(self, line: str) -> None:
        self._lines.append(line)
        self._moved.set()

    async def _tell_and_wait(self, line: str) -> None:
        """Add a line, and wait until it is read, so that the next step does not overtake it."""
        self._tell(line)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ANSWER_SECONDS):
                while self._taken < len(self._lines):
                    self._moved.clear()
                    await self._moved.wait()

    # --- The steps ---------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        connection, config = self._connection, self._connection.config
        try:
            async with asyncio.timeout(LOGIN_SECONDS):
                is_wanted = await self._log_in()
        except TimeoutError as error:
            raise ToolFailure(f"no user logged in to {config.name} within {LOGIN_SECONDS:g} s", CATEGORY) from error
        except OAuthError as error:
            raise ToolFailure(f"the login to {config.name} failed: {error}", CATEGORY) from error
        if not is_wanted:
            self._tell(f"{config.name} does not ask for a login.")
        await connection.refresh()
        if connection.state is not ServerState.CONNECTED:
            raise ToolFailure(f"{config.name} is not connected after the login: {connection.problem}", CATEGORY)
        self._tell(f"{config.name} is connected; it has {show_count(len(connection.catalogue.tools), 'tool')}.")

    async def _log_in(self) -> bool:
        """Log in; return False if the server does not ask for a login."""
        connection, config = self._connection, self._connection.config
        endpoint, oauth, http = self._endpoint, config.oauth, self._http
        kept = await self._logins.find(config, endpoint.url)
        challenge = await challenge_of(endpoint)
        if challenge is None:
            is_wanted = oauth.enabled or oauth.authorization_url or connection.state is ServerState.NEEDS_LOGIN
            if not is_wanted and kept is None:
                return False
            challenge = Challenge.of(connection.challenge)
        found = await discover(http, endpoint.url, oauth, challenge)
        if not found.endpoints.authorize:
            raise OAuthError(f"{found.endpoints.issuer} has no authorization endpoint; users cannot log in there")
        http.require(found.endpoints.authorize, "the authorization endpoint")
        http.require(found.endpoints.token, "the token endpoint")
        asked = " ".join(oauth.scopes) or found.scope
        scope = union(kept.wanted_scope, asked) if kept is not None else asked
        registration = kept.registration if kept is not None else None
        async with receiving(oauth.redirect_uri) as receiver:
            self._receiver = receiver
            token = await self._registered_and_authorized(receiver, found, scope, registration)
        self._receiver = None
        where = await self._logins.save(config, replace(token, server_url=endpoint.url))
        self._tell(f"The login is stored in {where}.")
        return True

    async def _registered_and_authorized(
        self, receiver: RedirectReceiver, found: Found, scope: str | None, kept: Registration | None
    ) -> StoredToken:
        """Log in as the registered client or a new one; if the server refuses the client, retry with a new one."""
        config = self._connection.config
        client = await client_for(self._http, config, found.endpoints, receiver.uri, scope, kept)
        try:
            return await self._authorized(receiver, found, client, scope)
        except TokenRefusedError as error:
            if not error.is_of_client or config.oauth.client_id is not None:
                raise
        self._tell(f"The server of {config.name} no longer knows this client; a new one is registered.")
        client = await client_for(self._http, config, found.endpoints, receiver.uri, scope, None)
        return await self._authorized(receiver, found, client, scope)

    async def _authorized(
        self, receiver: RedirectReceiver, found: Found, registration: Registration, scope: str | None
    ) -> StoredToken:
        """Send the user to the page, and exchange the returned code for tokens."""
        verifier, client, redirect_uri = Verifier(), registration.client, receiver.uri
        audiences = self._connection.config.oauth.audiences
        url = authorization_url(
            found.endpoints, client, redirect_uri, verifier, resource=found.resource, scope=scope, audiences=audiences
        )
        receiver.expect(verifier.state)
        await self._show(url, found, redirect_uri)
        code = require_redirect(await self._answer(receiver), verifier.state, found.endpoints)
        form, headers = authenticated(code_form(code, redirect_uri, verifier, found.resource, audiences), client)
        token_url = found.endpoints.token
        answer = await self._http.post(token_url, "the token endpoint", form=form, headers=headers)
        grant = granted(answer.status, answer.value, place(token_url))
        if self._connection.config.oauth.client_id is not None:
            registration = replace(registration, client=replace(client, secret=None))  # the settings contain it
        return StoredToken(
            grant.access_token,
            grant.refresh_token,
            None if grant.seconds is None else time.time() + grant.seconds,
            grant.scope or scope,
            registration=registration,
            endpoints=found.endpoints,
            resource=found.resource,
            lifetime=grant.seconds,
        )

    async def _show(self, url: str, found: Found, redirect_uri: str) -> None:
        name, browser, paste = self._connection.config.name, self._user.open_browser, self._user.paste
        where = urlsplit(found.endpoints.authorize).netloc
        opens = "your browser opens" if browser is not None else "open"
        way = "paste it here" if paste is not None else f"give it with /mcp auth {name} ADDRESS"
        await self._tell_and_wait(
            f"To log in to {name} ({found.resource}), {opens} this page of {where}:\n{url}\n"
            f"It leads back to {redirect_uri} on this machine. Should the browser be on another one, and end at a page "
            f"that cannot be reached: copy the whole address of that page and {way}."
        )
        is_shown = False
        if browser is not None:
            try:
                is_shown = await in_thread(lambda: browser(url), ANSWER_SECONDS) is not False
            except TimeoutError:
                is_shown = True  # the browser's program runs until it is closed
            except Exception as error:
                _LOG.info("no browser could be opened: %s", error)
            if not is_shown:
                self._tell("No browser could be opened here; open the page in one yourself.")
        if not is_shown and paste is None:
            self._is_left = True
            minutes = round(LOGIN_SECONDS / 60)
            self._tell(f"The login to {name} waits for {minutes} minutes; /mcp shows whether it is connected.")

    async def _answer(self, receiver: RedirectReceiver) -> Mapping[str, str]:
        paste = self._user.paste
        if paste is None:
            return await receiver.answer
        pasting = asyncio.create_task(self._pasting(receiver, paste))
        try:
            return await receiver.answer
        finally:
            pasting.cancel()
            await asyncio.wait({pasting}, timeout=2)

    async def _pasting(self, receiver: RedirectReceiver, paste: Paste) -> None:
        while True:
            try:
                receiver.paste(await paste())
            except EOFError:
                return
            except OAuthError as error:
                self._tell(f"{error}.")
            else:
                return
