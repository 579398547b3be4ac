"""web_fetch: read a page of the web as text.

Only public addresses, checked after the name is resolved; never through a proxy, and without cookies or credentials. A
redirect to another host is reported and not followed, since the user was asked about the first one.
"""

import asyncio
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from isthmus.development_tool import ConfirmationDetails, GenericDetails, ToolOutput
from isthmus.record import record
from isthmus.text.html_text import html_text, page_title
from isthmus.text.visible import without_escapes
from isthmus.tools.port.arguments import INVALID_ARGUMENTS, check_arguments
from isthmus.tools.port.base import Arguments, CallContext, ToolContext, ToolKind, ToolResult, ToolSucceeded
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.kept_files import KeptFiles

if TYPE_CHECKING:
    import httpx2

    from isthmus.network.checked_transport import AddressPolicy

URL_CHARACTERS = 2_000
"""Maximum length of a URL in characters."""
MAXIMUM_BYTES = 5 * 1024 * 1024
"""Maximum size of a page."""
MAXIMUM_CHARACTERS = 40_000
"""Maximum number of characters that the model receives; a file has the rest."""
DEADLINE_SECONDS = 30.0
"""Maximum time for a page, with its redirects."""
MAXIMUM_REDIRECTS = 5
_FAILURE = "web_fetch_error"
_TEXT_TYPE = re.compile(r"text/|application/([\w.-]+\+)?(json|xml|yaml|javascript|toml)\b|application/xhtml")

PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "url": {
            "type": "string",
            "minLength": 1,
            "maxLength": URL_CHARACTERS,
            "description": "The address of the page, with https:// or http://.",
        },
    },
    "required": ["url"],
}


@record
class _Page:
    url: str
    media_type: str
    text: str
    moved_to: str = ""


class WebFetch:
    """Fetches a page. ``policy`` refuses addresses; without one only public addresses are allowed."""

    name = "web_fetch"
    description = (
        "Reads a page of the web by its URL and returns its text: HTML as simple Markdown with its links, other text "
        f"as it is. At most {MAXIMUM_CHARACTERS} characters come at once; the result names the file with all of it. "
        "For documentation, issues and errors that the project itself does not explain. Nothing on this machine or in "
        "a private network is reached. The user is asked about each URL."
    )
    parameters = PARAMETERS
    kind = ToolKind.OTHER

    def __init__(self, policy: "AddressPolicy | None" = None) -> None:
        self._policy = policy

    def describe(self, arguments: Arguments) -> str:
        """Return the URL."""
        return self._check(arguments)

    async def propose(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None:
        """Return the URL, whole."""
        return GenericDetails(f"Fetch {self._check(arguments)}")

    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult:
        """Fetch the page and return its text."""
        url = self._check(arguments)
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                page = await self._fetch(url)
        except TimeoutError as error:
            raise ToolFailure(f"{url} did not answer within {DEADLINE_SECONDS:g} s", _FAILURE) from error
        if page.moved_to:
            text = f"{url} leads to another host: {page.moved_to}. Nothing was read; fetch that URL if it is wanted."
            return ToolSucceeded(ToolOutput(text=text), text)
        text = await asyncio.to_thread(_readable, page)
        note = await asyncio.to_thread(_keep, context, text) if len(text) > MAXIMUM_CHARACTERS else ""
        # What strangers wrote cannot end the block that marks it.
        shown = text[:MAXIMUM_CHARACTERS].replace("</untrusted_context>", "&lt;/untrusted_context&gt;")
        for_model = f"{page.url}:\n<untrusted_context>\n{shown}\n</untrusted_context>{note}"
        return ToolSucceeded(ToolOutput(text=f"{page.url}: {len(text):,} characters"), for_model)

    async def _fetch(self, url: str) -> _Page:
        import httpx2

        from isthmus.network.checked_transport import AddressRefusedError, CheckedTransport
        from isthmus.network.handshakes import close_cancelled_handshake
        from isthmus.network.public_addresses import public_only

        transport = CheckedTransport(self._policy or public_only)
        headers = {
            "User-Agent": "isthmus",
            "Accept": "text/html, text/*;q=0.9, */*;q=0.5",
            "Accept-Encoding": "identity",
        }
        try:
            async with httpx2.AsyncClient(
                transport=transport,
                headers=headers,
                timeout=DEADLINE_SECONDS,
                event_hooks={"request": [close_cancelled_handshake]},
            ) as client:
                current = url
                for _ in range(MAXIMUM_REDIRECTS + 1):
                    async with client.stream("GET", current) as response:
                        client.cookies.clear()
                        target = response.headers.get("location") if response.is_redirect else None
                        if target is None:
                            return await _page(current, response)
                        current, before = _checked_url(urljoin(current, target)), current
                    if _site(current) != _site(before):
                        return _Page(url, "", "", current)
        except AddressRefusedError as error:
            raise ToolFailure(f"{url} was not fetched: {error}; only public addresses are reached", _FAILURE) from error
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise ToolFailure(f"{url} cannot be fetched: {error or type(error).__name__}", _FAILURE) from error
        raise ToolFailure(f"{url} redirects more than {MAXIMUM_REDIRECTS} times", _FAILURE)

    def _check(self, arguments: Arguments) -> str:
        return _checked_url(check_arguments(self.name, PARAMETERS, arguments).string("url"))


def _checked_url(url: str) -> str:
    """Return a URL that may be fetched, as far as can be said without the network."""
    try:
        parts = urlsplit(url)
        has_port = parts.port is None or parts.port > 0
    except ValueError as error:
        raise ToolFailure(f"web_fetch: url: cannot be read: {error}", INVALID_ARGUMENTS) from error
    problem = ""
    if len(url) > URL_CHARACTERS:
        problem = f"expected at most {URL_CHARACTERS} characters"
    elif not url.isascii() or re.search(r"[\x00-\x20\x7f\\]", url):
        problem = "has characters that must be percent-encoded (in names: punycode)"
    elif parts.scheme not in ("http", "https") or not (parts.hostname or "").strip(".") or not has_port:
        problem = "expected a URL that begins with https:// or http:// and names a host"
    elif parts.username is not None or parts.password is not None:
        problem = "contains a user or a password"
    if problem:
        raise ToolFailure(f"web_fetch: url: {problem}, received {url[:200]!r}", INVALID_ARGUMENTS)
    return url


def _site(url: str) -> str:
    return (urlsplit(url).hostname or "").removeprefix("www.")


async def _page(url: str, response: "httpx2.Response") -> _Page:
    media_type = response.headers.get("content-type", "text/plain").partition(";")[0].strip().lower()
    if not response.is_success:
        raise ToolFailure(f"{url} answered with status {response.status_code} {response.reason_phrase}", _FAILURE)
    if _TEXT_TYPE.match(media_type) is None:
        raise ToolFailure(f"{url} is {media_type[:100]}, not text; a shell command can download it", _FAILURE)
    read = bytearray()
    async for chunk in response.aiter_bytes():
        read += chunk
        if len(read) > MAXIMUM_BYTES:
            raise ToolFailure(f"{url} is larger than {MAXIMUM_BYTES // 1024**2} MiB, which is the limit", _FAILURE)
    return _Page(url, media_type, await asyncio.to_thread(decoded, bytes(read), response.charset_encoding))


def decoded(data: bytes, label: str | None) -> str:
    """Return the text of a page in the encoding that its server names, if the WHATWG's Encoding Standard has it.

    Any other name means UTF-8, or windows-1252 if the page is not UTF-8. Python knows codecs that are not for pages;
    some of them take quadratic time or raise other errors. A byte order mark counts before the name. Blocks.
    """
    from webencodings import UTF8, decode, lookup

    encoding = None if label is None else lookup(label)
    if encoding is not None and encoding.name == "replacement":
        return "\ufffd"  # an encoding that browsers do not read, because its texts can hide markup
    text, used = decode(data, encoding or UTF8)
    is_unknown = label is not None and encoding is None and used is UTF8
    return decode(data, "windows-1252")[0] if is_unknown and "\ufffd" in text else text


def _readable(page: _Page) -> str:
    text = page.text
    if "html" in page.media_type:
        title = page_title(text)
        text = (f"# {title}\n\n" if title else "") + html_text(text, page.url)
    return without_escapes(text).strip("\n") or "(no text)"


def _keep(context: CallContext, text: str) -> str:
    """Write a long text to a file, and return the note about it."""
    cut = f"\n[Cut after {MAXIMUM_CHARACTERS} of {len(text)} characters."
    try:
        path = KeptFiles(context.output_folder, context.tool_call_id).keep(text.encode(), ".txt")
    except OSError as error:
        return f"{cut} The rest could not be kept: {error.strerror or error}]"
    return f"{cut} All of it is in {path}]"
