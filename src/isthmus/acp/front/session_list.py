"""The list of sessions for a client, in pages."""

from collections.abc import Sequence
from datetime import UTC, datetime

from isthmus.acp.front.place import FrontPlace
from isthmus.acp.v1.sessions import ListSessionsRequest, ListSessionsResponse, SessionInfo
from isthmus.client import AgentClient
from isthmus.encoding.codec import JsonObject, to_camel_json
from isthmus.fronts.conversations import Conversation, list_sessions
from isthmus.rpc.messages import INVALID_PARAMS, RpcError

PAGE_SESSIONS = 50
"""Maximum number of sessions in one answer to ``session/list``."""


async def listed_sessions(agent: AgentClient, place: FrontPlace, request: ListSessionsRequest) -> JsonObject:
    """Return a page of the list; raise RpcError for a cursor that is none."""
    start = 0
    if request.cursor is not None:
        if not request.cursor.isascii() or not request.cursor.isdigit():
            raise RpcError(INVALID_PARAMS, "cursor: expected the nextCursor of an earlier answer")
        start = int(request.cursor[:9])
    found = await list_sessions(agent, request.cwd)
    page = found[start : start + PAGE_SESSIONS]
    after = start + len(page)
    cursor = str(after) if after < len(found) else None
    folders = await place.further_folders([session.tasks[-1].task_id for session in page])
    listed = (_info(session, folders.get(session.tasks[-1].task_id, ())) for session in page)
    return to_camel_json(ListSessionsResponse(tuple(listed), cursor))


def _info(session: Conversation, folders: Sequence[str]) -> SessionInfo:
    updated = datetime.fromtimestamp(session.updated_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return SessionInfo(session.context_id, session.tasks[-1].workspace, session.title, updated, tuple(folders) or None)
