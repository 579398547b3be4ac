"""Open files of an IDE of the Claude IDE protocol, from its selection notifications and its lists of tabs.

No I/O and no clock: the caller passes the time, and a function that checks whether a file exists. Buffers without a
file (diff views, terminals) are left out, as everywhere.
"""

import os
from collections.abc import Callable, Sequence

from isthmus.ide.claude.client_wire import ReportedSelection, Tab
from isthmus.ide.context import IdeContext, ide_context
from isthmus.ide.context_tracker import ContextTracker
from isthmus.ide.editor import OpenFile, Position, Selection

MAXIMUM_SELECTIONS = 50


class SeenFiles:
    """Open files of one IDE. Times are in Unix seconds."""

    def __init__(self, exists: Callable[[str], bool] = os.path.isfile) -> None:
        self._exists = exists
        self._tabs: dict[str, Tab] = {}
        self._reports: dict[str, ReportedSelection] = {}
        self._focused_at: dict[str, float] = {}
        self._active: str | None = None
        self._is_listed = False
        self.is_trusted: bool | None = None
        """Whether the user trusts the workspace; None if the IDE does not report it."""

    def selected(self, report: ReportedSelection, now: float) -> None:
        """Record the user's position; ignore a file that does not exist."""
        if not self._exists(report.path):
            return
        self._reports.pop(report.path, None)
        self._reports[report.path] = report
        while len(self._reports) > MAXIMUM_SELECTIONS:
            self._reports.pop(next(iter(self._reports)))
        self._active = report.path
        self._focused_at[report.path] = now

    def listed(self, tabs: Sequence[Tab], now: float) -> None:
        """Record that exactly these tabs are open."""
        self._tabs = {tab.path: tab for tab in tabs}
        self._is_listed = True
        self._reports = {path: report for path, report in self._reports.items() if path in self._tabs}
        kept = {path: at for path, at in self._focused_at.items() if path in self._tabs}
        self._focused_at = dict.fromkeys(self._tabs, now) | kept
        active = next((tab.path for tab in tabs if tab.is_active), None)
        if active is not None and active != self._active:
            self._active = active
            self._focused_at[active] = now

    @property
    def is_current(self) -> bool:
        """Whether the listed tabs include the user's current file."""
        return self._is_listed and (self._active is None or self._active in self._tabs)

    def open_files(self) -> tuple[OpenFile, ...]:
        """Return the open files that exist: the active one first, the others by last focus."""
        paths = [path for path in dict.fromkeys((*self._tabs, *self._reports)) if self._exists(path)]
        files = [self._file(path) for path in paths]
        return tuple(sorted(files, key=lambda file: (not file.is_active, -file.focused_at)))

    def context(self) -> IdeContext:
        """Return the context in the form and within the limits of the Gemini CLI companion protocol."""
        tracker = ContextTracker(self._exists)
        tracker.update(self.open_files(), self.is_trusted)
        return ide_context(tracker.latest)

    def label_of(self, path: str) -> str | None:
        """Return the label of a file's tab; None if it has no tab."""
        tab = self._tabs.get(path)
        return tab.label if tab is not None else None

    def _file(self, path: str) -> OpenFile:
        tab = self._tabs.get(path) or Tab(path, "")
        report = self._reports.get(path)
        place = report.range if report is not None else tab.selection
        selection: Selection | None = None
        cursor: Position | None = None
        if place is not None:
            # The protocol does not report the end at which the cursor is.
            cursor = place.end
            if report is not None and report.text and place.start != place.end:
                selection = Selection(place, report.text)
        return OpenFile(
            path,
            self._focused_at.get(path, 0.0),
            path == self._active,
            cursor,
            selection,
            bool(tab.is_dirty),
            tab.language_id,
            tab.line_count,
        )
