"""The workbench of ``serve``: its pages, what they watch and notify, and the link that lets a browser in."""

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING, TextIO

from isthmus.programs.setup.setup import BadInputError, Setup

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from isthmus.a2a.push.sender import PushSender
    from isthmus.a2a.server.users.users import UserTable
    from isthmus.a2a.server.users.users_file import UsersFile
    from isthmus.engine import Engine
    from isthmus.engine.port.workspaces import WorkspaceRule
    from isthmus.programs.serve.serve_settings import ServeSettings
    from isthmus.programs.serve.workbench_view import AgentView
    from isthmus.web.pages import WorkbenchPages
    from isthmus.web.sessions.message_queue import MessageQueue


async def workbench_pages(setup: Setup, settings: "ServeSettings") -> "WorkbenchPages":
    """Return the workbench.

    Raises:
        BadInputError: it is not built.
    """
    from isthmus.a2a.server.http.paths import public_path
    from isthmus.a2a.server.users.users_file import FILE, UsersFile
    from isthmus.programs.serve.running_companions import RunningCompanions
    from isthmus.web.companions.reviews import ReviewsApi
    from isthmus.web.http.bundle import BundleMissingError, read_bundle
    from isthmus.web.pages import WorkbenchPages

    try:
        bundle = await asyncio.to_thread(read_bundle)
    except BundleMissingError as error:
        raise BadInputError(str(error)) from error
    folders = dict.fromkeys(str(folder.resolve()) for folder in (setup.workspace, *settings.allowed_workspaces))
    name = "Isthmus" if settings.agent is None else settings.agent.title
    users, reviews = UsersFile(setup.data_dir / FILE), ReviewsApi(RunningCompanions())
    path = public_path(settings.public_url)
    return WorkbenchPages(bundle.below(path), users, name, tuple(folders), reviews=reviews, path=path)


def completed(pages: "WorkbenchPages", setup: Setup, rule: "WorkspaceRule", sender: "PushSender") -> "AgentView":
    """Let the pages show the agent and notify devices; return the view, which is to get the agent's resources."""
    from isthmus.programs.serve.workbench_view import AgentView
    from isthmus.web.push.notifications import Notifications

    view = AgentView(setup, rule)
    pages.view = view
    pages.notifications = Notifications(pages.users, sender, setup.data_dir)
    return view


@contextlib.asynccontextmanager
async def notifying(pages: "WorkbenchPages | None", engine: "Engine") -> "AsyncGenerator[None]":
    """Notify devices of questions, and take answers by notifications, as long as the context lasts."""
    if pages is None or pages.notifications is None:
        yield
        return
    from isthmus.web.push.answering import PushedAnswers
    from isthmus.web.push.notices import QuestionNotices
    from isthmus.web.push.sent_file import SentFile
    from isthmus.web.push.task_facts import JournalTaskFacts

    tasks, told = JournalTaskFacts(engine.journal), SentFile(pages.notifications.folder)
    pages.answers = PushedAnswers(told, pages.users, tasks, engine.for_user)
    notices = QuestionNotices(pages.notifications, pages.answers, tasks, pages.agent)
    running = asyncio.create_task(notices.run(engine.questions), name="isthmus-notifications")
    try:
        yield
    finally:
        pages.answers = None
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@contextlib.asynccontextmanager
async def watching_journal(pages: "WorkbenchPages", engine: "Engine", rule: "WorkspaceRule") -> "AsyncGenerator[None]":
    """Let the pages show changes and sessions of the engine's tasks, and send messages that wait in sessions."""
    from isthmus.web.sessions.message_queue import MessageQueue

    queue = MessageQueue(engine.journal, engine.for_user)
    _show_journal(pages, engine, rule, queue)
    running = asyncio.create_task(queue.run(), name="isthmus-message-queue")
    try:
        yield
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def _show_journal(pages: "WorkbenchPages", engine: "Engine", rule: "WorkspaceRule", queue: "MessageQueue") -> None:
    from isthmus.web.sessions.changes import ChangeFeed
    from isthmus.web.sessions.pictures import PicturesApi
    from isthmus.web.sessions.sessions import SessionsApi

    pages.pictures = PicturesApi(engine.journal)
    pages.changes = ChangeFeed(engine.journal)
    pages.sessions = SessionsApi(engine.journal, pages.agent, lambda: rule.resolved_roots, queue)


def table_of(users: "UsersFile | None", pages: "WorkbenchPages | None") -> "Callable[[], UserTable] | None":
    """Return the function for the tokens that are let in: without folders for users, the owner's devices alone."""
    if users is not None:
        return users.table
    if pages is None:
        return None
    devices = pages.users
    return lambda: devices.table().of_owner()


def show_page(pages: "WorkbenchPages", url: str, output: TextIO, *, opens: bool) -> None:
    """Print a link to ``url`` that lets one browser in, as a QR code, too, and open it if wanted and possible."""
    from isthmus.programs.process.browser import open_browser
    from isthmus.web.pairing.links import HOW_TO_REACH, entry_link, is_reachable

    pages.url = url
    if pages.notifications is not None and url.startswith("https://"):
        pages.notifications.contact = url
    link = entry_link(pages.url, pages.codes.for_link("", pages.clock()).text)
    has_opened = opens and open_browser(link.url)
    output.write(f"Workbench{' opened in your browser' if has_opened else ''}: {link.url}\n")
    output.write("The link lets one browser in, within ten minutes. Another one: isthmus serve pair\n")
    if not is_reachable(pages.url):
        output.write(f"{HOW_TO_REACH}\n")
    elif link.qr is not None and can_show_qr(output):
        output.write(link.qr.as_terminal_text())
    output.flush()


def can_show_qr(output: TextIO) -> bool:
    """Return whether an output is a terminal that has half blocks and colours."""
    encoding = (output.encoding or "").lower().replace("-", "")
    return output.isatty() and encoding == "utf8" and os.environ.get("TERM") != "dumb"
