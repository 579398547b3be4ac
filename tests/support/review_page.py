"""The user at the review page, with a browser's handling of forms: cookies, newlines, ticked boxes, Origin."""

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urlsplit

import httpx2

from isthmus.ide.reviews.review import DiffReview
from support.plain_http import plain_client


@dataclass(slots=True)
class Form:
    """One form as a browser sees it: its target and its fields. `fields` may be changed before it is sent."""

    action: str
    fields: dict[str, str] = field(default_factory=dict[str, str])


class _Forms(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self.links: list[str] = []
        self.refresh: str | None = None
        self._area: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        match tag:
            case "form":
                self.forms.append(Form(values["action"]))
            case "input":
                if values.get("type") != "checkbox" or "checked" in values:
                    self.forms[-1].fields[values["name"]] = values["value"]
            case "textarea":
                self._area = values["name"]
                self.forms[-1].fields[self._area] = ""
            case "meta" if values.get("http-equiv") == "refresh":
                self.refresh = values["content"]
            case "a":
                self.links.append(values["href"])
            case _:
                pass

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self._area = None

    def handle_data(self, data: str) -> None:
        if self._area is not None:
            self.forms[-1].fields[self._area] += data


@dataclass(slots=True)
class Page:
    """A loaded page."""

    status: int
    text: str
    forms: list[Form]
    links: list[str]
    headers: Mapping[str, str]


class Visitor:
    """A browser with one visit of the page, made by :func:`visiting`."""

    def __init__(self, http: httpx2.AsyncClient, base: str) -> None:
        self._http = http
        self.base = base

    async def overview(self) -> Page:
        """Load the first page."""
        return await self.get(f"{self.base}/")

    async def review(self, review: DiffReview) -> Page:
        """Load the page of one review."""
        return await self.get(f"{self.base}/review/{review.id}")

    async def get(self, path: str) -> Page:
        """Load a page."""
        return _page(await self._http.get(path))

    async def submit(self, form: Form, action: str, **headers: str) -> Page:
        """Press a button of a form."""
        # A browser sends every newline of a field as CRLF.
        fields = {name: re.sub("\r\n|\r|\n", "\r\n", value) for name, value in form.fields.items()}
        origin = f"http://{self._http.base_url.host}:{self._http.base_url.port}"
        sent = {"origin": origin} | headers
        return _page(await self._http.post(form.action, data=fields | {"action": action}, headers=sent))

    async def answer(self, review: DiffReview, action: str, text: str | None = None) -> None:
        """Accept, reject or keep a review, with another text typed into its field, if given."""
        form = (await self.review(review)).forms[0]
        if text is not None:
            form.fields["text"] = text
        page = await self.submit(form, action)
        assert page.status == 200, page.text
        assert "notice" not in page.text.partition("<body>")[2], page.text


def _page(response: httpx2.Response) -> Page:
    parser = _Forms()
    parser.feed(response.text)
    for form in parser.forms:
        # The first newline after the tag is not part of the text.
        for name in form.fields:
            if name == "text" or name.startswith("source-"):
                form.fields[name] = form.fields[name].removeprefix("\n")
    return Page(response.status_code, response.text, parser.forms, parser.links, dict(response.headers))


@asynccontextmanager
async def browser(link: str) -> AsyncGenerator[httpx2.AsyncClient]:
    """Yield a browser without cookies, at the host of a link."""
    parts = urlsplit(link)
    base = f"http://{parts.netloc}"
    async with plain_client(base_url=base, follow_redirects=True) as http:
        yield http


@asynccontextmanager
async def visiting(link: str) -> AsyncGenerator[Visitor]:
    """Open a link of the review page as the user does."""
    async with browser(link) as http:
        parser = _Forms()
        response = await http.get(link)
        assert response.status_code == 200, response.text
        parser.feed(response.text)
        assert parser.refresh is not None
        yield Visitor(http, parser.refresh.partition("url=")[2].rstrip("/"))
