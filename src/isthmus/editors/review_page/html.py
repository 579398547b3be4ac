"""HTML of the review page, from the files in ``templates``: no scripts, every text escaped.

Pure: data in, HTML out. :mod:`isthmus.editors.review_page.page` decides which requests get it.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from html import escape
from importlib import resources
from string import Template
from typing import Final

from isthmus.editors.review_page.pending_reviews import PageQuestion, ReviewView
from isthmus.notebooks.changes import Change, ChangeKind, NotebookChanges
from isthmus.notebooks.view import heading, remarks
from isthmus.record import record
from isthmus.text.diff import line_opcodes, split_lines
from isthmus.text.visible import visible

MAXIMUM_EDITABLE_CHARACTERS: Final = 1024 * 1024
"""Maximum length of a proposal that can be edited in a browser; a longer one can be accepted or rejected."""
MAXIMUM_ROWS: Final = 3000
"""Maximum number of lines of a comparison."""
CONTEXT_LINES: Final = 3
"""Number of lines that are shown before and after a changed one."""
REFRESH_SECONDS: Final = 3


class Html(str):
    """A part of a page: text that is inserted as it is, while any other text is escaped."""

    __slots__ = ()


@record
class PageForm:
    """Base path of a visit's forms, and the secret that only our own pages know."""

    base: str
    secret: str


def document(title: str, body: Html, nonce: str, *, refresh: str = "") -> str:
    """Return a whole page.

    ``nonce`` allows its style. ``refresh``: seconds, or seconds and an address, after which the browser loads the page
    again, or the address.
    """
    again = Html(f'<meta http-equiv="refresh" content="{escape(refresh)}">' if refresh else "")
    return _filled("page.html", title=title, body=body, nonce=nonce, refresh=again)


def paragraph(text: str, *, is_notice: bool = False) -> Html:
    """Return a text as a paragraph; nothing for an empty one."""
    start = '<p class="notice">' if is_notice else "<p>"
    return Html(f"{start}{_shown(text)}</p>" if text else "")


def link(address: str, text: str) -> Html:
    """Return a link as a paragraph."""
    return Html(f'<p><a href="{escape(address)}">{_shown(text)}</a></p>')


def overview(
    views: Sequence[ReviewView], questions: Sequence[PageQuestion], messages: Sequence[str], form: PageForm
) -> Html:
    """Return the first page: the questions, links to the reviews, and the messages, newest first."""
    asked = [
        _filled(
            "question.html", id=_exact(each.id), title=each.title, text=each.text, base=form.base, secret=form.secret
        )
        for each in questions
    ]
    items = [
        f'<li><a href="{form.base}/review/{_exact(view.review.id)}">{_shown(view.review.file_path)}</a> '
        f"<small>{_shown(view.review.title)}</small></li>"
        for view in views
    ]
    reviews = f"<h2>Proposed edits</h2><ul>{''.join(items)}</ul>" if items else ""
    if not views and not questions:
        reviews = paragraph("Nothing waits for your answer. This page is updated every few seconds.")
    told = "".join(["<h2>Messages</h2>", *map(paragraph, reversed(messages))]) if messages else ""
    return _filled("overview.html", questions=Html("".join(asked)), reviews=Html(reviews), messages=Html(told))


def review(
    view: ReviewView, old: str | None, changes: NotebookChanges | None, state: str, form: PageForm, notice: str = ""
) -> Html:
    """Return one review: the changed cells of a notebook, each with a box to tick, or any other file whole."""
    if changes is not None and changes.all:
        hint = paragraph("Tick the changes that you accept; the rest of the notebook stays as it is.")
        body = "".join([hint, *_cells(changes)])
        accept = "Accept what is ticked"
    else:
        body, accept = _whole(view, old), "Accept"
    return _filled(
        "review.html",
        path=view.review.file_path,
        new_file=Html("<small>(new file)</small>" if old is None else ""),
        agent=view.review.title or "an agent",
        notice=paragraph(notice, is_notice=True),
        id=_exact(view.review.id),
        base=form.base,
        secret=form.secret,
        state=state,
        changes=Html(body),
        accept=accept,
    )


def _filled(name: str, **parts: str) -> Html:
    """Return a template with its parts, of which only :class:`Html` is not escaped."""
    texts = {key: part if isinstance(part, Html) else _shown(part) for key, part in parts.items()}
    return Html(_template(name).substitute(texts))


@cache
def _template(name: str) -> Template:
    return Template(resources.files("isthmus.editors.review_page").joinpath("templates", name).read_text("utf-8"))


def _shown(text: str) -> str:
    """Escape a text to be read; invisible characters in it become visible."""
    return escape(visible(text))


def _exact(text: str) -> Html:
    """Escape a text that comes back as it is, such as an id."""
    return Html(escape(text))


def _whole(view: ReviewView, old: str | None) -> str:
    table = _table(old or "", view.text, context=CONTEXT_LINES)
    if len(view.text) > MAXIMUM_EDITABLE_CHARACTERS:
        return table + paragraph("It is too long to be edited here; accept it as it is, or reject it.", is_notice=True)
    return f"{table}<h2>The text to accept</h2>{_editor('text', view.text, 'text to accept')}"


def _cells(changes: NotebookChanges) -> Iterator[Html]:
    for change in changes.all:
        old, new = changes.cells(change)
        sources = (old.source if old else "", new.source if new else "")
        yield _filled(
            "change.html",
            number=str(change.number),
            title=heading(changes, change),
            remarks=Html("".join(f"<p><small>{_shown(remark)}</small></p>" for remark in remarks(old, new))),
            table=Html("" if change.kind is ChangeKind.NOTEBOOK else _table(*sources)),
            edit=Html("" if new is None else _cell_editor(change, new.source)),
        )


def _cell_editor(change: Change, source: str) -> str:
    if len(source) > MAXIMUM_EDITABLE_CHARACTERS:
        return ""
    editor = _editor(f"source-{change.number}", source, f"source of change {change.number}")
    return f"<details><summary>Edit</summary>{editor}</details>"


def _editor(name: str, text: str, label: str) -> str:
    rows = min(max(text.count("\n") + 2, 3), 30)
    # A browser leaves out the first newline behind the tag.
    shown = escape(text.removeprefix("\ufeff"), quote=False)
    return f'<textarea name="{name}" aria-label="{label}" rows="{rows}" spellcheck="false">\n{shown}</textarea>'


def _table(old: str, new: str, context: int | None = None) -> str:
    """Compare two texts side by side; with ``context``, show only changed lines and that many around them."""
    rows = list(_rows(split_lines(old), split_lines(new), context))
    cut = len(rows) - MAXIMUM_ROWS
    if cut > 0:
        rows[MAXIMUM_ROWS:] = [_gap(f"{cut} more lines are not shown")]
    columns = '<colgroup><col class="n"><col><col class="n"><col></colgroup>'
    return f"<table>{columns}{''.join(rows)}</table>"


def _rows(old: Sequence[str], new: Sequence[str], context: int | None) -> Iterator[str]:
    opcodes = line_opcodes(old, new)
    for number, (tag, start, end, new_start, new_end) in enumerate(opcodes):
        if tag != "equal":
            for offset in range(max(end - start, new_end - new_start)):
                yield _row(old, new, start + offset, end, new_start + offset, new_end, changed=True)
            continue
        length = end - start
        before = 0 if number == 0 else length if context is None else min(context, length)
        after = 0 if number == len(opcodes) - 1 else length if context is None else min(context, length)
        if context is None or before + after >= length:
            before, after = length, 0
        for offset in (*range(before), *range(length - after, length)):
            if offset == length - after and before + after < length:
                yield _gap(f"{length - before - after} lines without a change")
            yield _row(old, new, start + offset, end, new_start + offset, new_end)
        if before + after < length and after == 0:
            yield _gap(f"{length - before} lines without a change")


def _row(
    old: Sequence[str], new: Sequence[str], at: int, end: int, new_at: int, new_end: int, *, changed: bool = False
) -> str:
    nothing = "<td class=n></td><td></td>"
    left = _side(old[at], at + 1, "old" if changed else "") if at < end else nothing
    right = _side(new[new_at], new_at + 1, "new" if changed else "") if new_at < new_end else nothing
    return f"<tr>{left}{right}</tr>"


def _side(line: str, number: int, kind: str) -> str:
    text = _shown(line.removesuffix("\n").removesuffix("\r"))
    return f'<td class="n">{number}</td><td class="{kind}">{text}</td>'


def _gap(text: str) -> str:
    return f'<tr class="gap"><td colspan="4">{escape(text)}</td></tr>'
