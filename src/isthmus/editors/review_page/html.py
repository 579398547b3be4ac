"""The pages on which a user reviews edits in a browser, as HTML: no scripts, every text escaped.

Pure: data in, HTML out. Which requests may see them is :mod:`review_page`'s.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from isthmus.editors.review_page.board import PageQuestion, ReviewView
from isthmus.notebooks.changes import Change, ChangeKind, NotebookChanges
from isthmus.notebooks.view import heading, remarks
from isthmus.text.diff import line_opcodes, split_lines
from isthmus.text.visible import visible

MAXIMUM_EDITABLE_CHARACTERS: Final = 1024 * 1024
"""A longer proposal can be accepted or rejected, but not edited in a browser."""
MAXIMUM_ROWS: Final = 3000
CONTEXT_LINES: Final = 3
REFRESH_SECONDS: Final = 3

_STYLE: Final = """
:root{color-scheme:light dark;font:15px/1.5 system-ui,sans-serif}body{max-width:80rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.3rem}h2{font-size:1.05rem;margin:1.5rem 0 .3rem}
fieldset{border:1px solid #8886;border-radius:6px;margin:1rem 0}
table{border-collapse:collapse;width:100%;table-layout:fixed;font:13px/1.45 ui-monospace,monospace}
td{vertical-align:top;white-space:pre-wrap;overflow-wrap:anywhere;padding:0 .5rem;border-left:1px solid #8883}
col.n{width:3.2rem}td.n{text-align:right;opacity:.55;border:0}td.old{background:#f003}td.new{background:#0a03}
tr.gap td{opacity:.55;text-align:center}textarea{width:100%;box-sizing:border-box;font:13px/1.45 ui-monospace,monospace}
pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#8881;padding:.6rem}
button{font:inherit;padding:.35rem 1rem;margin:.5rem .5rem .5rem 0}
.notice{border-left:4px solid #c80;padding:.2rem .8rem}
small{opacity:.7}
"""


@dataclass(frozen=True, slots=True)
class PageForm:
    """What every form of a visit carries: where it is sent to, and the secret that only our own pages know."""

    base: str
    secret: str


def document(title: str, body: str, nonce: str, *, refresh: str = "") -> str:
    """A whole page. ``refresh``: seconds, or seconds and address, after which the browser loads it or another one."""
    again = f'<meta http-equiv="refresh" content="{escape(refresh)}">' if refresh else ""
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8">{again}'
        '<meta name="viewport" content="width=device-width"><meta name="referrer" content="same-origin">'
        f'<title>{_shown(title)}</title><style nonce="{nonce}">{_STYLE}</style><body>{body}</body></html>'
    )


def overview(
    views: Sequence[ReviewView], questions: Sequence[PageQuestion], messages: Sequence[str], form: PageForm
) -> str:
    """What waits for the user."""
    parts = ["<h1>Isthmus: what agents ask you</h1>"]
    for question in questions:
        parts.append(
            f'<form method="post" action="{form.base}/question/{question.id}"><fieldset>{_hidden(form)}'
            f"<h2>{_shown(question.title)}</h2><pre>{_shown(question.text)}</pre>"
            '<button name="action" value="yes">Yes</button><button name="action" value="no">No</button>'
            '<button name="action" value="session">Yes, until this agent leaves</button>'
            "</fieldset></form>"
        )
    if views:
        items = [
            f'<li><a href="{form.base}/review/{view.review.id}">{_shown(view.review.file_path)}</a> '
            f"<small>{_shown(view.review.title)}</small></li>"
            for view in views
        ]
        parts.append(f"<h2>Proposed edits</h2><ul>{''.join(items)}</ul>")
    if not views and not questions:
        parts.append("<p>Nothing waits for an answer. This page looks again every few seconds.</p>")
    if messages:
        parts.append("<h2>Messages</h2>" + "".join(f"<p>{_shown(text)}</p>" for text in reversed(messages)))
    return "".join(parts)


def review(
    view: ReviewView, old: str | None, changes: NotebookChanges | None, state: str, form: PageForm, notice: str = ""
) -> str:
    """One review: a notebook's changed cells each with a box to tick, any other file whole."""
    whole = changes is None or not changes.all
    body = _whole(view, old) if whole or changes is None else "".join(_cells(changes))
    hint = "" if whole else "<p>Tick the changes that you accept; the rest of the notebook stays as it is.</p>"
    said = f'<p class="notice">{escape(notice)}</p>' if notice else ""
    new = " <small>(new file)</small>" if old is None else ""
    return (
        f'<p><a href="{form.base}/">All that waits</a></p><h1>{_shown(view.review.file_path)}{new}</h1>'
        f"<p>proposed by {_shown(view.review.title or 'an agent')}</p>{said}{hint}"
        f'<form method="post" action="{form.base}/review/{view.review.id}">{_hidden(form)}'
        f'<input type="hidden" name="state" value="{state}">{body}'
        f'<p><button name="action" value="accept">Accept{"" if whole else " what is ticked"}</button>'
        '<button name="action" value="reject">Reject</button>'
        '<button name="action" value="keep">Keep my edits, answer later</button></p></form>'
    )


def _shown(text: str) -> str:
    """Text to be read; what is hidden in it is seen. In what is edited, it has to stay as it is."""
    return escape(visible(text))


def _hidden(form: PageForm) -> str:
    return f'<input type="hidden" name="secret" value="{form.secret}">'


def _whole(view: ReviewView, old: str | None) -> str:
    table = _table(old or "", view.text, context=CONTEXT_LINES)
    if len(view.text) > MAXIMUM_EDITABLE_CHARACTERS:
        return f"{table}<p class='notice'>It is too long to be edited here; accept it as it is, or reject it.</p>"
    return f"{table}<h2>The text to accept</h2>{_editor('text', view.text, 'text to accept')}"


def _cells(changes: NotebookChanges) -> Iterator[str]:
    for change in changes.all:
        title = _shown(heading(changes, change))
        old, new = changes.cells(change)
        said = "".join(f"<p><small>{_shown(remark)}</small></p>" for remark in remarks(old, new))
        table = (
            "" if change.kind is ChangeKind.NOTEBOOK else _table(old.source if old else "", new.source if new else "")
        )
        edit = "" if new is None else _cell_editor(change, new.source)
        yield (
            f'<fieldset><legend><label><input type="checkbox" name="change-{change.number}" value="yes" checked> '
            f"{change.number}. {title}</label></legend>{said}{table}{edit}</fieldset>"
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
    """Both texts side by side; with ``context`` only the changed lines and so many around them."""
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
    left = _side(old[at], at + 1, "old" if changed else "") if at < end else "<td class=n></td><td></td>"
    right = (
        _side(new[new_at], new_at + 1, "new" if changed else "") if new_at < new_end else "<td class=n></td><td></td>"
    )
    return f"<tr>{left}{right}</tr>"


def _side(line: str, number: int, kind: str) -> str:
    return (
        f'<td class="n">{number}</td><td class="{kind}">{_shown(line.removesuffix(chr(10)).removesuffix(chr(13)))}</td>'
    )


def _gap(text: str) -> str:
    return f'<tr class="gap"><td colspan="4">{escape(text)}</td></tr>'
