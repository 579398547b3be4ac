"""Requests about the trust in a folder (docs/reference/workbench.md): the open question, and its answer.

An answer names the items that were shown. If the folder's files have others by then, nothing is stored.
"""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, TypeGuard, cast
from urllib.parse import parse_qs

from isthmus.a2a.server.users.auth import Refusal
from isthmus.errors import IsthmusError
from isthmus.web.http.refusals import RefusalCode, refusal
from isthmus.web.view import ChangedQuestionError, NotShownError, WorkbenchView

_NO_PATH = refusal(RefusalCode.BAD_REQUEST, "expected workspace as an absolute path")
_NOTHING_ASKED = refusal(RefusalCode.NOT_FOUND, "this server asks about no folders")


async def trust_question(view: WorkbenchView | None, user: str, query: bytes) -> dict[str, Any] | Refusal:
    """Return the open question about the folder that a query names; null without one."""
    workspace = parse_qs(query.decode("ascii", "replace")).get("workspace", [""])[0]
    if not _is_folder_path(workspace):
        return _NO_PATH
    if view is None:
        return _NOTHING_ASKED
    try:
        return {"workspace": workspace, "question": await view.trust(user, workspace)}
    except NotShownError as error:
        return refusal(RefusalCode.NOT_SHOWN, str(error))


async def decide_trust(view: WorkbenchView | None, user: str, given: Mapping[str, object]) -> dict[str, Any] | Refusal:
    """Store the answer in the body of a request."""
    workspace, choice, digests = given.get("workspace"), given.get("choice"), given.get("items")
    if not isinstance(workspace, str) or not isinstance(choice, str) or not _are_texts(digests):
        return refusal(RefusalCode.BAD_REQUEST, "expected workspace and choice as text, and items as a list of digests")
    if not _is_folder_path(workspace):
        return _NO_PATH
    if view is None:
        return _NOTHING_ASKED
    try:
        await view.decide_trust(user, workspace, choice, digests)
    except NotShownError as error:
        return refusal(RefusalCode.NOT_SHOWN, str(error))
    except ChangedQuestionError as error:
        return refusal(RefusalCode.TRUST_CHANGED, str(error))
    except IsthmusError as error:
        return refusal(RefusalCode.TRUST_NOT_STORED, str(error))
    return {"workspace": workspace}


def _is_folder_path(text: str) -> bool:
    return PurePath(text).is_absolute() and "\0" not in text


def _are_texts(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(item, str) for item in cast("list[object]", value))
