"""Answers to the requests of an agent: questions for the user, and files of the workspace.

The user's text is written where the user changed a proposal. Files are served inside the workspace alone.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from isthmus.acp.host.agent_question import AgentQuestion, AnswerT
from isthmus.acp.host.edits import whole_change
from isthmus.acp.host.files import Expected, FileRefusedError, SessionFiles, lines_of
from isthmus.acp.host.form_question import CANCEL, FormQuestion
from isthmus.acp.host.limits import HostLimits
from isthmus.acp.host.prompt_turn import Permission, PromptTurn
from isthmus.acp.v1.client_requests import (
    CancelledOutcome,
    ElicitationResponse,
    FormElicitation,
    PermissionKind,
    PermissionOption,
    PermissionRequest,
    PermissionResponse,
    ReadTextFileRequest,
    ReadTextFileResponse,
    Selected,
    WriteTextFileRequest,
)
from isthmus.acp.v1.content import TextBlock
from isthmus.acp.v1.updates import BlockContent, DiffContent, ToolCallChanged, ToolCallState
from isthmus.encoding.codec import JsonObject, from_json, to_camel_json
from isthmus.forms.form import FormError
from isthmus.rpc import messages as rpc
from isthmus.text.diff import unified_diff
from isthmus.text.visible import with_ellipsis

RESOURCE_NOT_FOUND = -32002
"""Error code of a file that does not exist."""
OUTSIDE = {"errorKind": "path_outside_workspace"}
"""Data of the error for a file that is not served, by which Qwen Code knows that it must read its own files itself."""
_ALWAYS, _ONCE = "always", "once"
_READ_OPTIONS = (
    PermissionOption(_ONCE, "Allow once", PermissionKind.ALLOW_ONCE),
    PermissionOption("no", "Reject", PermissionKind.REJECT_ONCE),
)


class AgentRequests:
    """Carries out the requests of an agent.

    ``turn_of`` returns the turn that works in a session, if one does; ``is_alive`` says whether the agent still runs,
    and ``has_session`` whether a session is the agent's. ``title`` is the agent's name for users.
    """

    def __init__(
        self,
        title: str,
        folder: str,
        files: SessionFiles,
        limits: HostLimits,
        turn_of: Callable[[str], PromptTurn | None],
        is_alive: Callable[[], bool],
        has_session: Callable[[str], bool],
    ) -> None:
        self._title = title
        self._folder = folder
        self._is_alive = is_alive
        self._has_session = has_session
        self._files = files
        self._limits = limits
        self._turn_of = turn_of
        self._asking = asyncio.Lock()
        """Held while a question is prepared: questions are shown in the agent's order."""
        self._agreed: set[tuple[str, str]] = set()
        """Sessions and files with secrets that the user allowed to be read in them."""
        self._asked_reads = 0

    async def answer(self, method: str, params: JsonObject) -> JsonObject:
        """Return the result of a request.

        Raises:
            IsthmusError: it is refused, or does not fit the protocol.
        """
        session = params.get("sessionId")
        if isinstance(session, str) and not self._has_session(session):
            raise rpc.RpcError(rpc.INVALID_PARAMS, f"there is no session {with_ellipsis(session, 100)!r}")
        match method:
            case "session/request_permission":
                return await self._permission(from_json(PermissionRequest, params))
            case FormElicitation.METHOD:
                if params.get("mode") != FormElicitation.TAG[1]:
                    raise rpc.RpcError(rpc.INVALID_PARAMS, "expected a form: other questions cannot be shown")
                return await self._elicitation(from_json(FormElicitation, params))
            case "fs/read_text_file":
                request = from_json(ReadTextFileRequest, params)
                return to_camel_json(ReadTextFileResponse(await self._read(request)))
            case "fs/write_text_file":
                await self._write(from_json(WriteTextFileRequest, params))
                return {}
            case _:
                raise rpc.RpcError(rpc.METHOD_NOT_FOUND, f"there is no method {method[: self._limits.title]}")

    async def _permission(self, request: PermissionRequest) -> JsonObject:
        if problem := self._problem_of(request.options):
            raise rpc.RpcError(rpc.INVALID_PARAMS, problem)
        return to_camel_json(PermissionResponse(await self._outcome(request)))

    def _problem_of(self, options: Sequence[PermissionOption]) -> str:
        """Return why a user cannot choose among options; empty if they can."""
        ids = [option.option_id for option in options]
        if not 1 <= len(ids) <= self._limits.options:
            return f"expected 1 to {self._limits.options} options, received {len(ids)}"
        if (longest := max(map(len, ids))) > self._limits.title:
            return f"expected an optionId of at most {self._limits.title} characters, received {longest}"
        if (twice := next((one for one in ids if ids.count(one) > 1), None)) is not None:
            return f"two options have the optionId {with_ellipsis(twice, 100)!r}, so that an answer would mean both"
        return ""

    async def _outcome(self, request: PermissionRequest) -> Selected | CancelledOutcome:
        """Return the user's answer to a question; cancelled if no turn works that could show it."""
        turn = self._turn_of(request.session_id)
        if turn is None or turn.is_abandoned:
            return CancelledOutcome()
        self._require_room(turn)
        async with self._asking:
            permission = Permission(await self._with_whole_change(request))
            if turn.is_abandoned:
                return CancelledOutcome()
            turn.add(permission)
        return await self._answer_to(permission)

    async def _elicitation(self, request: FormElicitation) -> JsonObject:
        turn = self._turn_of(request.session_id or "")
        if turn is None or turn.is_abandoned:
            return to_camel_json(ElicitationResponse(CANCEL))
        self._require_room(turn)
        try:
            question = FormQuestion(request, self._title, self._folder)
        except FormError as error:
            raise rpc.RpcError(rpc.INVALID_PARAMS, str(error)) from error
        async with self._asking:
            if turn.is_abandoned:
                return to_camel_json(ElicitationResponse(CANCEL))
            turn.add(question)
        return to_camel_json(await self._answer_to(question))

    def _require_room(self, turn: PromptTurn) -> None:
        if len(turn.open) >= self._limits.open_questions:
            raise rpc.RpcError(rpc.SERVER_ERROR, f"{len(turn.open)} questions are open; wait for their answers")

    async def _answer_to(self, question: AgentQuestion[AnswerT]) -> AnswerT:
        try:
            return await question.wait()
        except asyncio.CancelledError:
            question.withdraw("The agent withdrew the question", is_lost=not self._is_alive())
            raise

    async def _with_whole_change(self, request: PermissionRequest) -> PermissionRequest:
        """Return a question whose diff is of the whole file, so that it can be edited; otherwise it becomes text."""
        content = request.tool_call.content or ()
        diffs = [item for item in content if isinstance(item, DiffContent)]
        if len(diffs) != 1:
            return request
        whole, diff = None, diffs[0]
        try:
            whole = whole_change(diff, await self._files.read(diff.path))
        except FileRefusedError as error:
            if error.is_missing:
                whole = whole_change(diff, None)
        shown = whole or BlockContent(TextBlock(unified_diff(diff.old_text, diff.new_text, diff.path)))
        content = tuple(shown if item is diff else item for item in content)
        return replace(request, tool_call=replace(request.tool_call, content=content))

    async def _require_agreement(self, request: ReadTextFileRequest) -> None:
        """Ask the user about a file that holds secrets, or that git ignores.

        Raises:
            FileRefusedError: the user does not allow it, or nobody can be asked.
        """
        asked = await asyncio.to_thread(self._files.asked_read, request.path)
        if asked is None or (request.session_id, asked.covered) in self._agreed:
            return
        self._asked_reads += 1
        call = ToolCallState(
            f"isthmus-read-{self._asked_reads}", f"Read {request.path}, which {asked.reason}", "read", "pending"
        )
        always = PermissionOption(_ALWAYS, asked.lasting, PermissionKind.ALLOW_ALWAYS)
        answer = await self._outcome(PermissionRequest(request.session_id, call, (always, *_READ_OPTIONS)))
        if not isinstance(answer, Selected) or answer.option_id not in (_ALWAYS, _ONCE):
            raise FileRefusedError(
                f"{request.path} was not read: it is a file which {asked.reason}, and the user did not allow it"
            )
        if (turn := self._turn_of(request.session_id)) is not None:
            turn.add(ToolCallChanged(call.tool_call_id, status="completed"))
        if answer.option_id == _ALWAYS:
            self._agreed.add((request.session_id, asked.covered))

    async def _read(self, request: ReadTextFileRequest) -> str:
        await self._require_agreement(request)
        try:
            text = await self._files.read(request.path)
        except FileRefusedError as error:
            if error.is_missing:
                # The words and the data are those of ACP's own libraries: some agents read no code.
                raise rpc.RpcError(RESOURCE_NOT_FOUND, f"Resource not found: {error}", {"uri": request.path}) from error
            if error.is_outside:
                raise rpc.RpcError(rpc.INTERNAL_ERROR, str(error), OUTSIDE) from error
            raise
        return lines_of(text, request.line, request.limit)

    async def _write(self, request: WriteTextFileRequest) -> None:
        turn = self._turn_of(request.session_id)
        if turn is None or turn.is_abandoned:
            raise FileRefusedError("the turn has ended; nothing was written")
        try:
            await self._write_in(turn, request)
        except FileRefusedError as error:
            turn.refused[request.path] = str(error)
            raise
        turn.refused.pop(request.path, None)

    async def _write_in(self, turn: PromptTurn, request: WriteTextFileRequest) -> None:
        if len(request.content) > self._limits.file:
            raise FileRefusedError(f"expected a file of at most {self._limits.file} characters; nothing was written")
        edit = turn.edit_for(lambda path: self._files.is_same(path, request.path))
        if edit is None:
            await self._files.write(request.path, request.content)
        elif turn.forget_edit(edit):
            await self._files.write(request.path, edit.text, Expected(edit.old_text))
            turn.notes.append(edit.note)
