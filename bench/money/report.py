"""Tables and figures of several sessions' bills."""

from collections.abc import Iterator, Sequence

from bench.figures import Figure, at_most, beside
from bench.money.running import SessionBill

MOST_PRICE = 0.8
"""Maximum of our price, divided by each peer's."""
LEAST_SHARE = 95.0
"""Minimum of our cached input tokens, in percent of all."""
SHOWN_DIFFERENCES = 4
SHOWN_PROBLEM = 300
"""Maximum number of characters of a problem that are shown."""


def figures(sessions: Sequence[SessionBill]) -> list[Figure]:
    """Return the figures of our sessions beside the peers' figures on the same wire."""
    found: list[Figure] = []
    for ours in sessions:
        if ours.client.name != "isthmus":
            continue
        wire = ours.client.wire
        peers = [each for each in sessions if each.client.wire == wire and each is not ours]
        for peer in peers:
            name = peer.client.name
            found += [
                beside(f"{wire}, price", float(ours.price), "$", name, float(peer.price), at_most=MOST_PRICE),
                _share(f"{wire}, cached input", ours, peer),
                beside(f"{wire}, tokens of files at the end", ours.visible, "", name, max(1, peer.visible), at_least=1),
                beside(f"{wire}, requests", len(ours.bills), "", name, len(peer.bills)),
            ]
        if not peers:
            found.append(at_most(f"{wire}, uncached input", 100 - 100 * ours.cached_share, "%", 100 - LEAST_SHARE))
    return found


def _share(name: str, ours: SessionBill, peer: SessionBill) -> Figure:
    value = 100 * ours.cached_share
    limit = f">= {LEAST_SHARE:g} %"
    return Figure(name, value, "%", peer.client.name, 100 * peer.cached_share, limit, value >= LEAST_SHARE)


def lines(sessions: Sequence[SessionBill]) -> Iterator[str]:
    """Yield a table of all sessions, then where requests stopped to repeat the one before, and all problems."""
    head = (
        *("wire", "client", "model", "price", "to ours", "from summary"),
        *("cached", "input", "output", "requests", "at the end", "at most"),
    )
    yield _row(head)
    for each in sessions:
        ours = next((other for other in sessions if _is_ours_beside(other, each)), None)
        ratio = "" if ours is None or not ours.price else f"{each.price / ours.price:.2f}x"
        yield _row(
            (
                each.client.wire,
                each.client.name,
                each.bills[-1].model if each.bills else "",
                f"${each.price:.4f}" + "+?" * any(bill.price is None for bill in each.bills),
                ratio,
                f"${each.price_after_summary:.4f}",
                f"{each.cached_share:.1%}",
                f"{sum(bill.usage.input for bill in each.bills):,}",
                f"{sum(bill.usage.output for bill in each.bills):,}",
                str(len(each.bills)),
                f"{each.visible:,}",
                f"{each.most_visible:,}",
            )
        )
    for each in sessions:
        yield from _remarks(each)


def _is_ours_beside(other: SessionBill, each: SessionBill) -> bool:
    return other.client.name == "isthmus" and other.client.wire == each.client.wire


def _remarks(session: SessionBill) -> Iterator[str]:
    title = f"{session.client.name}, {session.client.wire}"
    lost = sum(difference.lost for difference in session.differences)
    if lost:
        yield f"  {title}: {len(session.differences)} requests did not repeat {lost:,} tokens of the one before"
    for each in sorted(session.differences, key=lambda each: -each.lost)[:SHOWN_DIFFERENCES]:
        yield f"    step {each.step}, {each.place}, {each.lost:,} tokens: {each.old!r} became {each.new!r}"
    for problem in session.problems:
        yield f"    {title}: {problem[:SHOWN_PROBLEM]}"


def _row(cells: Sequence[str]) -> str:
    widths = (9, 11, 22, 10, 7, 12, 6, 10, 7, 8, 10, 8)
    aligned = (
        cell.ljust(width) if place < 3 else cell.rjust(width)
        for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return f"  {'  '.join(aligned)}".rstrip()
