"""A program with a review page: prints its port, and path and cookie of a visit, and serves until a signal."""

import asyncio
import http.client
import json
from urllib.parse import urlsplit

from isthmus.editors.review_page.pending_reviews import PendingReviews
from isthmus.editors.review_page.server import ReviewPageServer
from isthmus.listeners.limits import raise_descriptor_limit


def _opened(link: str) -> dict[str, object]:
    """Follow a link as a browser does."""
    parts = urlsplit(link)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port or 0, timeout=30)
    connection.request("GET", parts.path)
    answer = connection.getresponse()
    assert answer.status == 200
    cookie, _, rest = (answer.headers["set-cookie"] or "").partition(";")
    path = rest.partition("Path=")[2].partition(";")[0] + "/"
    return {"port": parts.port, "path": path, "cookie": cookie}


async def _main() -> None:
    raise_descriptor_limit()
    page = ReviewPageServer(PendingReviews(lambda _: None))
    await page.start()
    print(json.dumps(await asyncio.to_thread(_opened, page.link())), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_main())
