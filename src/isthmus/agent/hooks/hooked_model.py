"""A model whose requests and answers pass through the hooks of the settings, as in Gemini CLI, with any provider.

Imported only if there are such hooks. Nothing of an answer is emitted before the hooks after it have let it pass. An
answer that they refuse is neither shown nor stored, and none of its calls can run.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Protocol

from typing_extensions import override

from isthmus.agent.hooks.dialects import HookedPrompt, moment_input_for
from isthmus.agent.hooks.model_forms import (
    NamedRequest,
    UnusableFormError,
    changed_request,
    request_form,
    response_form,
    response_text,
    with_additions,
    with_texts,
)
from isthmus.agent.hooks.refusal import STOPPED_BY_HOOK, RefusedByHookError
from isthmus.agent.hooks.tool_hooks import ToolHooks
from isthmus.agent.hooks.tool_selection import ToolNames, ToolSelection, selection_of
from isthmus.agent.hooks.verdicts import Verdict, specific_output, verdict_of
from isthmus.encoding.codec import JsonObject
from isthmus.encoding.json_shapes import as_object
from isthmus.models.port.base import (
    Capabilities,
    ChatModel,
    Done,
    Finish,
    Message,
    ModelError,
    ModelRequest,
    Retrying,
    StreamItem,
    Text,
    TextDelta,
    ThoughtDelta,
    ToolRequest,
    ToolRequestStarted,
    Usage,
    requests_of,
    text_of,
)
from isthmus.record import record
from isthmus.settings.rules.hooks import Hook, HookEvent


class HookedConversation(Protocol):
    """The conversation of a session, which hooks may add to, and whose requests they may change."""

    async def tell(self, text: str) -> None:
        """Keep a text in the conversation, behind the user's last message."""
        ...

    async def sent(self, model: ChatModel, original: ModelRequest, request: ModelRequest) -> None:
        """Note a request, as it was without the hooks and as it is sent."""
        ...


@record
class HookedSession:
    """The session whose model has hooks.

    Attributes:
        hooks: its hooks.
        moment: its ids and its folder, at the time of the call; its text is not used.
        names: the names under which hooks know a tool.
        show: shows the user what hooks say.
        open_model: opens the model that a hook names, or raises ModelError.
        begin_watch: returns a new watcher of a text, which gets its pieces and raises when the text is to end.
        conversation: its conversation; None for requests beside one, such as summaries.
    """

    hooks: ToolHooks
    moment: Callable[[], HookedPrompt]
    names: ToolNames
    show: Callable[[Verdict], Awaitable[None]]
    open_model: Callable[[str], Awaitable[ChatModel]]
    begin_watch: Callable[[], Callable[[str], None]]
    conversation: "HookedConversation | None" = None


class HookedModel(ChatModel):
    """A model with hooks; a refusal of theirs is a RefusedByHookError."""

    def __init__(self, model: ChatModel, session: HookedSession) -> None:
        self._model = model
        self._session = session

    @property
    @override
    def name(self) -> str:
        """The name of the model that answers, which a hook may have chosen."""
        return self._model.name

    @property
    @override
    def provider(self) -> str:
        return self._model.provider

    @property
    @override
    def capabilities(self) -> Capabilities:
        return self._model.capabilities

    @override
    async def aclose(self) -> None:
        await self._model.aclose()

    @override
    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Yield the answer that the hooks let pass, as specified by :meth:`ChatModel.stream`.

        Raises:
            ModelError: there is no usable answer, or a model that a hook names cannot be opened.
            RefusedByHookError: a hook refused the request, which was not sent, or the answer.
        """
        passed = await self._before(NamedRequest(self._model.name, request))
        if isinstance(passed, str):
            yield TextDelta(passed)
            yield Done(Message("assistant", (Text(passed),)), Usage(), Finish.STOP)
            return
        if passed.model != self._model.name:
            try:
                self._model = await self._session.open_model(passed.model)
            except ModelError as error:
                raise ModelError(error.kind, f"A hook asks for the model {passed.model[:100]!r}: {error}") from error
        selection = await self._select(passed)
        sent = passed.request
        if selection is not None:
            told = selection.told(sent, self._session.names)
            sent = selection.applied(sent, self._session.names)
            if told is not None and sent.messages and sent.messages[-1].role == "user":
                sent = replace(sent, messages=with_texts(sent.messages, (told,)))
                await self._tell(told)
        if self._session.conversation is not None:
            await self._session.conversation.sent(self._model, request, sent)
        answer = self._judged(sent) if self._session.hooks.of(HookEvent.AFTER_MODEL) else self._model.stream(sent)
        async with aclosing(answer) as items:
            async for item in items:
                if isinstance(item, Done) and selection is not None:
                    yield replace(item, message=selection.refused(item.message, self._session.names))
                else:
                    yield item

    async def _before(self, named: NamedRequest) -> NamedRequest | str:
        """Return the request as the hooks want it, or the text of their answer to it.

        They run one after another, each with the changes of those before it, so that none of the changes is lost.
        """
        answer: str | None = None
        said: list[Verdict] = []
        told: list[str] = []
        for hook in self._session.hooks.of(HookEvent.BEFORE_MODEL):
            verdict, specific = await self._run(hook, {"llm_request": request_form(named)})
            try:
                own = response_text(response) if (response := specific.get("llm_response")) else None
                changed = changed_request(named, form) if (form := specific.get("llm_request")) else named
            except UnusableFormError as error:
                own, changed = None, named
                verdict = _unusable(verdict, hook, error)
            if own is not None and hook.is_project:
                verdict = _of_project(verdict, hook, "answers in place of the model")
            elif own is not None and verdict.stop is None:
                reason = verdict.denial or verdict.question
                note = f"{hook.where} answered in place of the model{f': {reason}' if reason else ''}"
                verdict = replace(verdict, denial=None, question=None, messages=(*verdict.messages, note))
                answer = answer if answer is not None else own
            elif changed != named and hook.is_project:
                verdict = _of_project(verdict, hook, "changes the request")
            else:
                named, added = with_additions(named, changed)
                told += added
            said.append(verdict)
        await self._settle(said, "the request to the model")
        if answer is not None:
            return answer
        for text in told:
            await self._tell(text)
        return named

    async def _tell(self, text: str) -> None:
        """Keep what was added to a request in the conversation, so that the next request begins as this one."""
        if self._session.conversation is not None:
            await self._session.conversation.tell(text)

    async def _select(self, named: NamedRequest) -> ToolSelection | None:
        """Return the tools that the hooks leave; None if none of them says anything about it."""
        hooks = self._session.hooks.of(HookEvent.TOOL_SELECTION)
        if not hooks:
            return None
        form = {"llm_request": request_form(named)}
        ended = await asyncio.gather(*(self._run(hook, form) for hook in hooks))
        await self._settle([verdict for verdict, _ in ended], "the request to the model")
        configs = [
            (hook, config)
            for hook, (_, specific) in zip(hooks, ended, strict=True)
            if (config := as_object(specific.get("toolConfig")))
        ]
        try:
            return selection_of(
                [config for hook, config in configs if not hook.is_project],
                [config for hook, config in configs if hook.is_project],
            )
        except UnusableFormError as error:
            where = ", ".join(hook.where for hook, _ in configs)
            raise RefusedByHookError(f"The request to the model was not sent: {where}: {error}.") from error

    async def _judged(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Yield the answer once it is complete and the hooks have let it pass."""
        held: list[ThoughtDelta] = []
        watch, watch_thought = self._session.begin_watch(), self._session.begin_watch()
        done: Done | None = None
        async with aclosing(self._model.stream(request)) as items:
            async for item in items:
                match item:
                    case TextDelta(text):
                        watch(text)
                    case ThoughtDelta(text):
                        watch_thought(text)
                        held.append(item)
                    case Retrying():
                        held.clear()
                        watch, watch_thought = self._session.begin_watch(), self._session.begin_watch()
                        yield item
                    case ToolRequestStarted():
                        yield item
                    case Done():
                        done = item
        if done is None:
            return
        passed = await self._after(NamedRequest(self._model.name, request), done)
        if passed is done:
            for thought in held:
                yield thought
        if text := text_of(passed.message):
            yield TextDelta(text)
        yield passed

    async def _after(self, named: NamedRequest, done: Done) -> Done:
        """Return the answer as the hooks want it: the same object if they change nothing.

        Its text is one chunk for them, and its calls are another one, without text.
        """
        form, message = request_form(named), done.message
        text, calls = text_of(message), requests_of(message)
        new_text = ""
        if text:
            last = (None, None) if calls else (done.finish, done.usage)
            new_text = await self._chunk(form, text, *last)
        if calls or not text:
            replaced = await self._chunk(form, "", done.finish, done.usage)
            if replaced:
                new_text, calls = new_text + replaced, ()
        if new_text == text and len(calls) == len(requests_of(message)):
            return done
        new = (Text(new_text),) if new_text or not calls else ()
        # Providers want their thoughts back beside the calls.
        kept = tuple(part for part in message.parts if not isinstance(part, Text)) if calls else ()
        first = next((at for at, part in enumerate(kept) if isinstance(part, ToolRequest)), len(kept))
        finish = Finish.STOP if done.finish is Finish.TOOL_CALLS and not calls else done.finish
        return replace(done, message=Message("assistant", (*kept[:first], *new, *kept[first:])), finish=finish)

    async def _chunk(self, request: Mapping[str, Any], text: str, finish: Finish | None, usage: Usage | None) -> str:
        """Return the text of a chunk after the hooks, each of which gets that of the one before."""
        said: list[Verdict] = []
        for hook in self._session.hooks.of(HookEvent.AFTER_MODEL):
            response = response_form(text, finish, usage)
            verdict, specific = await self._run(hook, {"llm_request": request, "llm_response": response})
            try:
                new = response_text(response) if (response := specific.get("llm_response")) else None
            except UnusableFormError as error:
                new, verdict = None, _unusable(verdict, hook, error)
            if new is not None and new != text and hook.is_project:
                verdict = _of_project(verdict, hook, "changes the answer")
            elif new is not None:
                text = new
            said.append(verdict)
        await self._settle(said, "the model's answer")
        return text

    async def _run(self, hook: Hook, fields: Mapping[str, Any]) -> tuple[Verdict, JsonObject]:
        moment = self._session.moment()
        outcome = await self._session.hooks.outcome(hook, moment_input_for(hook, moment, fields), moment.session_id)
        verdict = verdict_of(hook, outcome)
        if outcome.is_cut:  # It may have hidden something, which would go to the provider now.
            verdict = _unusable(verdict, hook, UnusableFormError("its output is too long to be read"))
        return verdict, specific_output(outcome)

    async def _settle(self, said: Sequence[Verdict], what: str) -> None:
        """Show what the hooks say.

        Raises:
            RefusedByHookError: one of them refuses, asks (there is nobody to ask here) or ends the work.
        """
        for verdict in said:
            if verdict.messages or verdict.stop is not None:
                await self._session.show(verdict)
        if (stop := next((verdict.stop for verdict in said if verdict.stop is not None), None)) is not None:
            raise RefusedByHookError(f"A hook stopped the work: {stop}", STOPPED_BY_HOOK)
        reasons = [reason for verdict in said if (reason := verdict.denial or verdict.question) is not None]
        if reasons:
            joined = "\n".join(reasons)
            raise RefusedByHookError(f"A hook refused {what}: {joined}")


def _of_project(verdict: Verdict, hook: Hook, what: str) -> Verdict:
    """Return a verdict that refuses: a project's hooks can only make stricter, and may have hidden something."""
    reason = verdict.denial or f"{hook.where} {what}, which only hooks of your own may do"
    return replace(verdict, denial=reason)


def _unusable(verdict: Verdict, hook: Hook, error: UnusableFormError) -> Verdict:
    return replace(verdict, denial=verdict.denial or f"{hook.where}: {error}")
