"""Asks the user whether what a folder's files start, reach and set may be used, and keeps the answer.

A folder that nothing was decided for is asked about as a whole; the answer is stored in Gemini CLI's
``~/.gemini/trustedFolders.json``. In a trusted folder, what is new or changed since is asked about, alone. If an editor
that has the folder open reports its trust, that counts for the folder. Without a user at the terminal, a message is
printed instead.
"""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, TypeAlias

from isthmus.mcp_host.config.folder_trust import TrustRule, state_trust, stated_trust
from isthmus.programs.setup.trust_items import DECIDING, ShownItem, listed, shown_items
from isthmus.record import record
from isthmus.settings.edit_file import SettingsFileError
from isthmus.settings.trust.agreements import agreement_path, decided, read_agreement, write_agreement
from isthmus.settings.trust.first_sight import record_first_sight
from isthmus.settings.trust.reading import project_items
from isthmus.terminal.questions.early_text import LONGEST_SHOWN, PAUSE_SECONDS, drop_begun_line
from isthmus.text.visible import visible_line, with_ellipsis

if TYPE_CHECKING:
    from isthmus.parts.editor.directory import EditorDirectory

MAXIMUM_SHOWN = 100
"""Maximum number of items in one question. Further ones are not agreed to by its answer: the next one has them."""


@record
class TrustQuestion:
    """A question to the user about the items of a folder's files.

    ``is_update``: the user trusts the folder, and these items are new or changed since. Otherwise nothing was decided
    for the folder. ``omitted`` is the number of items that are left for the next question.
    """

    folder: Path
    shown: tuple[ShownItem, ...]
    is_update: bool
    omitted: int = 0

    @property
    def title(self) -> str:
        """The question."""
        if self.is_update:
            return f"Allow what is new or changed in {visible_line(str(self.folder))}?"
        return f"Do you trust {visible_line(str(self.folder))}?"

    @property
    def lines(self) -> Sequence[str]:
        """The items below their headings, as they are shown to the user."""
        lines = [
            visible_line(line)
            for line in listed(
                self.shown,
                "Its files would start on this machine:",
                "They would also bring:",
                "Its files would bring:",
            )
        ]
        more = [f"  and {self.omitted} more, about which you are asked next time"] if self.omitted else []
        return [*lines, *more]

    def state(self, rule: TrustRule) -> None:
        """Store the rule for a folder for which nothing was decided. Blocking.

        Raises:
            SettingsFileError: it cannot be stored.
        """
        if rule is not TrustRule.NOT:
            self.decide(is_agreed=True)  # before the folder is trusted: what it has by then was not shown
        state_trust(Path.home(), self.folder, rule)

    def decide(self, *, is_agreed: bool) -> None:
        """Store whether the user agreed to the items. Blocking.

        Raises:
            SettingsFileError: it cannot be stored.
        """
        decisions = {each.item.digest: is_agreed for each in self.shown}
        present = project_items(self.folder, Path.home())
        try:
            write_agreement(self.folder, decided(read_agreement(self.folder), present, decisions))
        except OSError as error:
            place = agreement_path(self.folder)
            raise SettingsFileError(f"{place} cannot be written: {error.strerror or error}") from error


OnUnknown: TypeAlias = Callable[[TrustQuestion], Awaitable[None]]
"""Callback for a folder about which the user has to decide."""


def open_question(folder: Path, environment: Mapping[str, str]) -> TrustQuestion | None:
    """Return the question that the user's file of trusted folders leaves open about a folder, if any. Blocking.

    A folder that is trusted and was not used before has a record made of its items.
    """
    home = Path.home()
    match stated_trust(home, folder):
        case True:
            return update_question(folder, environment)
        case None:
            shown = shown_items(folder, home, environment)
            is_asked = any(each.item.kind in DECIDING for each in shown)
            return _question(folder, shown, is_update=False) if is_asked else None
        case _:
            return None


def update_question(folder: Path, environment: Mapping[str, str]) -> TrustQuestion | None:
    """Return the question about what is new or changed in a trusted folder; None without it. Blocking."""
    home = Path.home()
    record_first_sight(folder, home)
    agreement = read_agreement(folder)
    if agreement is None or all(map(agreement.is_decided, project_items(folder, home))):
        return None
    shown = [each for each in shown_items(folder, home, environment) if not agreement.is_decided(each.item)]
    return _question(folder, shown, is_update=True)


def _question(folder: Path, shown: Sequence[ShownItem], *, is_update: bool) -> TrustQuestion:
    omitted = max(len(shown) - MAXIMUM_SHOWN, 0)
    return TrustQuestion(folder, tuple(shown[:MAXIMUM_SHOWN]), is_update, omitted)


async def settle_trust(
    on_unknown: OnUnknown, folder: Path, environment: Mapping[str, str], editors: "EditorDirectory | None"
) -> bool:
    """Call `on_unknown` if the user has to decide about what the folder's files bring; return whether it did."""
    question = await asyncio.to_thread(open_question, folder, environment)
    if question is None:
        return False
    if editors is not None:
        await editors.connect(folder)  # waits for its state
        if (by_editor := editors.trust(folder)) is not None:
            question = await asyncio.to_thread(update_question, folder, environment) if by_editor else None
    if question is None:
        return False
    await on_unknown(question)
    return True


async def ask_for_trust(question: TrustQuestion) -> None:
    """Ask the user at this terminal and store the answer; after Ctrl-D the question comes again at the next start.

    Raises:
        SettingsFileError: the answer cannot be stored.
    """
    folder, parent = question.folder, question.folder.parent
    if question.is_update:
        choices = [
            "  1  Allow this, from now on",
            "  2  Don't allow it: continue without it",
        ]
    else:
        choices = [
            f"  1  Trust this folder ({visible_line(folder.name)})",
            f"  2  Trust its parent folder and all folders in it ({visible_line(parent.name or str(parent))})",
            "  3  Don't trust: continue without these",
        ]
    sys.stdout.write("\n".join((question.title, *question.lines, *choices)) + "\n")
    sys.stdout.flush()
    if sys.stdin.isatty():
        await _drop_early_lines(sys.stdin.fileno())
    answers = [str(number + 1) for number in range(len(choices))]
    while True:
        sys.stdout.write(f"  answer ({', '.join(answers)}): ")
        sys.stdout.flush()
        typed = await _typed_line(sys.stdin.fileno())
        if typed is None:
            sys.stdout.write("\n")
            return
        if (answer := typed.strip()) in answers:
            break
    if question.is_update:
        await asyncio.to_thread(question.decide, is_agreed=answer == "1")
    else:
        rules = {"1": TrustRule.FOLDER, "2": TrustRule.PARENT, "3": TrustRule.NOT}
        await asyncio.to_thread(question.state, rules[answer])


def report_untrusted(stream: TextIO) -> OnUnknown:
    """Return a callback for runs without a user that prints what is not used, and how to allow it."""

    async def print_untrusted(question: TrustQuestion) -> None:
        shown = visible_line(str(question.folder))
        why = (
            f"it is new or changed since you trusted {shown}"
            if question.is_update
            else f"you have not decided whether to trust {shown}"
        )
        lines = "\n".join(question.lines)
        hide = "" if question.is_update else f", `isthmus trust --no {shown}` to hide this message"
        stream.write(
            f"isthmus: not used, because {why}:\n{lines}\nisthmus: run `isthmus trust {shown}` to allow it{hide}\n"
        )
        stream.flush()

    return print_untrusted


async def _drop_early_lines(descriptor: int) -> None:
    """Discard input typed before the question was shown, or without a pause after it: it is not an answer."""
    with suppress(TimeoutError):
        while True:
            async with asyncio.timeout(PAUSE_SECONDS):
                if (typed := await _typed_line(descriptor)) is None:
                    return
            shown = with_ellipsis(visible_line(typed.strip()), LONGEST_SHOWN)
            sys.stdout.write(f"  Typed before this question, so not taken as an answer: {shown}\n")
            sys.stdout.flush()
    drop_begun_line(descriptor)


async def _typed_line(descriptor: int) -> str | None:
    """Return a line of a terminal in line mode; None at the end of input.

    Does not read in a thread, because a reading thread cannot be cancelled and the program would wait for it.
    """
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)
    data = os.read(descriptor, 4096)
    return data.decode("utf-8", "replace") if data else None
