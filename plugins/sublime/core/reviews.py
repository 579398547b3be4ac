"""Proposed edits, each in a tab, where the user changes, accepts or rejects it."""

import os

import sublime

from .hunks import replacements
from .pause import is_readable, readable_at
from .views import text_of, text_on_disk

REVIEW = "isthmus_review"
"""Name of the setting that holds the review's id in a view that shows a proposed text."""


class Fresh:
    """A review that took the focus from the view `before`; from the time `at` on it takes decisions."""

    def __init__(self, view, before):
        self.view, self.before, self.at = view, before, readable_at()
        self.text = text_of(view)

    def typed(self):
        """Return position and text of what was typed into the review since then; None for any other change."""
        text = text_of(self.view)
        length = len(text) - len(self.text)
        same = min(len(text), len(self.text))
        start = next((at for at in range(same) if text[at] != self.text[at]), same)
        is_typed = length > 0 and text[:start] + text[start + length :] == self.text
        return (start, text[start : start + length]) if is_typed else None


class Reviews:
    """The reviews of all windows. `tell` sends a notification to the companion; `pause` tells when the user pauses."""

    def __init__(self, pause, tell):
        self.pause, self.tell = pause, tell
        self.typing = set()
        self.proposals = {}  # path of the file and proposed text, by the review's id
        self.fresh = None

    def views(self):
        """Return the views of the open reviews."""
        views = [view for window in sublime.windows() for view in window.views()]
        return [view for view in views if view.settings().get(REVIEW)]

    def open(self, id, path, proposed, title):
        """Open a review in a tab, which comes to the front when the user pauses."""
        window = sublime.active_window()
        before = window.active_view()
        view = window.new_file()
        view.set_scratch(True)
        view.set_name("{}: {}".format(title or "Proposed", os.path.basename(path)))
        self.pause.is_filling = True
        proposed = proposed.replace("\r\n", "\n")
        self.proposals[id] = (path, proposed)
        view.run_command("append", {"characters": proposed, "force": True})
        self.pause.is_filling = False
        syntax = sublime.find_syntax_for_file(path)
        if syntax is not None:
            view.assign_syntax(syntax)
        view.set_reference_document(text_on_disk(path))  # the gutter shows what is different
        view.settings().set(REVIEW, id)
        view.set_status("isthmus", "Edit as you like. Isthmus: Accept takes it, closing this tab rejects it.")
        if before is None:
            self.came(view, before)
        else:
            window.focus_view(before)
            self.bring(view, window, before)

    def bring(self, view, window, before, is_told=False):
        """Bring a review to the front as soon as the user has paused."""
        if not view.settings().get(REVIEW) or window.active_view() == view:
            return
        if not self.pause.is_there():
            if not is_told:
                sublime.status_message("Isthmus: a proposed edit waits in the tab {}".format(view.name()))
            sublime.set_timeout(lambda: self.bring(view, window, before, True), 200)
            return
        before = window.active_view() or before
        window.focus_view(view)
        self.came(view, before)

    def came(self, view, before):
        """Note that a review has come to the front."""
        self.fresh = Fresh(view, before)

    def is_fresh(self, view):
        """Return whether a review came to the front a moment ago, so that input is not meant for it."""
        return self.fresh is not None and self.fresh.view == view and not is_readable(self.fresh.at)

    def gave_back(self, view):
        """Give the focus back if a fresh review took it; return the view that has it again, else None."""
        if view is None or not self.is_fresh(view):
            return None
        before, self.fresh = self.fresh.before, None
        if before is not None:
            sublime.active_window().focus_view(before)
            sublime.status_message("Isthmus: a proposed edit waits in the tab {}".format(view.name()))
        return before

    def modified(self, view):
        """Move text that was typed into a fresh review to the view that it was meant for."""
        fresh = self.fresh
        if self.pause.is_filling or not self.is_fresh(view):
            self.typed(view)
        elif fresh.typed() is not None:
            # After this key; the review may have taken more keys by then.
            sublime.set_timeout(lambda: self.hand_over(fresh), 0)

    def hand_over(self, fresh):
        """Move text that was typed into a fresh review to the view before it."""
        view, found = fresh.view, fresh.typed()
        if found is None or not view.settings().get(REVIEW):
            return
        if self.fresh is fresh:
            self.fresh = None
        before = fresh.before
        if before is None or not before.is_valid() or before.is_read_only():
            self.typed(view)  # no other view can take it: it is an edit of the review
            return
        start, typed = found
        self.pause.is_filling = True
        view.run_command("isthmus_take_out", {"start": start, "end": start + len(typed)})
        self.pause.is_filling = False
        sublime.active_window().focus_view(before)
        before.run_command("insert", {"characters": typed})
        sublime.status_message("Isthmus: a proposed edit waits in the tab {}".format(view.name()))

    def close(self, id):
        """Close a review without a decision, and return its text; None if it is not open."""
        for view in self.views():
            if view.settings().get(REVIEW) == id:
                text = text_of(view)
                self.end(view)
                view.close()
                return {"text": text}
        return None

    def drop(self):
        """Close all reviews without a decision."""
        for view in self.views():
            self.end(view)
            view.close()

    def end(self, view):
        """Make a view one without a review."""
        self.proposals.pop(view.settings().get(REVIEW), None)
        view.settings().erase(REVIEW)

    def decide_hunks(self, view, edit, is_accepted):
        """Accept or reject the hunks at the cursors of a review, which only edits its text."""
        review = view.settings().get(REVIEW)
        if review not in self.proposals:
            return
        if self.is_fresh(view):
            sublime.status_message("Isthmus: this edit came up only now; read it, then decide once more")
            return
        path, proposed = self.proposals[review]
        source, count = proposed if is_accepted else text_on_disk(path), 0
        for region in reversed(list(view.sel())):
            rows = [view.rowcol(point)[0] for point in (region.begin(), region.end())]
            for start, end, text in replacements(text_of(view), source, *rows):
                view.replace(edit, sublime.Region(start, end), text)
                count += 1
        if count:
            sublime.status_message("Isthmus: Accept takes the text as it is here now")
        else:
            what = "proposal" if is_accepted else "file on disk"
            sublime.status_message("Isthmus: the lines at the cursor are those of the {} already".format(what))

    def accept(self, view):
        """Accept the text in a review, unless it came to the front a moment ago."""
        review = view.settings().get(REVIEW)
        if review and self.is_fresh(view):
            sublime.status_message("Isthmus: this edit came up only now; read it, then accept it once more")
        elif review:
            text = text_of(view)
            self.end(view)
            self.tell("editor/didAcceptDiff", id=review, text=text)
            view.close()

    def typed(self, view):
        """Send the text of a review soon: if Sublime Text crashes, the companion keeps it for the user."""
        review = view.settings().get(REVIEW)
        if review and review not in self.typing:
            self.typing.add(review)
            sublime.set_timeout(lambda: self.tell_text(view, review), 1000)

    def tell_text(self, view, review):
        """Send the text of a review to the companion."""
        self.typing.discard(review)
        if view.settings().get(REVIEW) == review:
            self.tell("editor/didEditDiff", id=review, text=text_of(view))

    def reject(self, view):
        """Reject a review, with the text in it."""
        review = view.settings().get(REVIEW)
        if review:
            text = text_of(view)
            self.end(view)
            self.tell("editor/didRejectDiff", id=review, text=text)
            sublime.status_message("Isthmus: rejected {}".format(view.name()))
