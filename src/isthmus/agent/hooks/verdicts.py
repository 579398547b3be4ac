"""Verdicts of hooks, read from their exit status and output as their programs do. Pure.

A hook can only refuse, ask, hide a result or add text for the model: its `allow` changes nothing.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, assert_never

from isthmus.encoding.codec import JsonObject
from isthmus.encoding.json_shapes import as_object, is_object
from isthmus.record import record
from isthmus.settings.rules.hooks import Hook, HookDialect, HookEvent
from isthmus.text.visible import with_ellipsis

BLOCKS = 2
"""Exit status with which a hook refuses."""
MAXIMUM_SHOWN_CHARACTERS = 500
"""Maximum length of a message for the user."""
MAXIMUM_REASON_CHARACTERS = 20_000
"""Maximum length of a text for the model."""


@record
class HookOutcome:
    """End of a hook's program.

    ``failure`` is why there is no exit status, for example its deadline; ``is_cut``: the output is not whole.
    """

    status: int | None
    output: str = ""
    errors: str = ""
    failure: str = ""
    is_cut: bool = False


@record
class Verdict:
    """Common statement of hooks about a call.

    Attributes:
        denial: reason to refuse it, or to hide its result.
        question: reason to ask the user.
        stop: reason to end the agent's work.
        arguments: arguments that the call should have instead.
        context: text for the model.
        messages: lines for the user.
    """

    denial: str | None = None
    question: str | None = None
    stop: str | None = None
    arguments: Mapping[str, Any] | None = None
    context: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()


def verdict_of(hook: Hook, outcome: HookOutcome) -> Verdict:
    """Return the verdict of one hook."""
    if outcome.status is None:
        return Verdict(messages=(f"{hook.where}: {outcome.failure}",))
    match hook.dialect:
        case HookDialect.GEMINI:
            verdict = _of_gemini(hook, outcome, outcome.status)
        case HookDialect.CLAUDE:
            verdict = _of_claude(hook, outcome, outcome.status)
            if hook.event in (HookEvent.AFTER_TOOL, HookEvent.AFTER_FAILED_TOOL) and verdict.denial is not None:
                # In Claude Code the result stays, and the model gets the reason with it.
                verdict = replace(verdict, denial=None, context=(verdict.denial, *verdict.context))
        case _:
            assert_never(hook.dialect)
    if hook.event in (HookEvent.SESSION_START, HookEvent.SUBAGENT_START):
        # A start is never refused; what a hook has against it is shown.
        refused = (verdict.denial,) if verdict.denial is not None else ()
        return Verdict(context=verdict.context, messages=(*refused, *verdict.messages))
    return verdict


def specific_output(outcome: HookOutcome) -> JsonObject:
    """Return what a hook of Gemini CLI says about its event alone; empty if it says nothing of that kind."""
    fields = _json(_said(outcome)) if outcome.status is not None else None
    return as_object(fields.get("hookSpecificOutput")) if fields is not None else {}


def strictest(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict of several hooks: what one of them refuses is refused."""
    found = tuple(verdicts)
    denials = [one.denial for one in found if one.denial is not None]
    questions = [one.question for one in found if one.question is not None]
    return Verdict(
        "\n".join(denials) if denials else None,
        "\n".join(questions) if questions else None,
        next((one.stop for one in found if one.stop is not None), None),
        next((one.arguments for one in found if one.arguments is not None), None),
        tuple(text for one in found for text in one.context),
        tuple(text for one in found for text in one.messages),
    )


def _of_gemini(hook: Hook, outcome: HookOutcome, status: int) -> Verdict:
    text = _said(outcome)
    fields = _json(text)
    if fields is None:
        # Gemini CLI refuses for every status but 0 and 1 if there is text.
        if status == BLOCKS or (status not in (0, 1) and text):
            return Verdict(denial=_reason(outcome.errors.strip() or text, hook))
        return Verdict(messages=_shown(hook, text, is_failure=status != 0))
    specific = as_object(fields.get("hookSpecificOutput"))
    reason = _reason(_text(fields.get("reason")) or _text(fields.get("stopReason")), hook)
    is_denied = fields.get("decision") in ("deny", "block") or status == BLOCKS
    changed = specific.get("tool_input")
    return Verdict(
        (reason if is_denied else None),
        (reason if fields.get("decision") == "ask" else None),
        (_reason(_text(fields.get("stopReason")), hook) if fields.get("continue") is False else None),
        changed if is_object(changed) and changed else None,
        _context(specific),
        _shown(hook, _text(fields.get("systemMessage")), is_failure=False),
    )


def _of_claude(hook: Hook, outcome: HookOutcome, status: int) -> Verdict:
    if status == BLOCKS:
        return Verdict(denial=_reason(outcome.errors.strip(), hook))
    if status != 0:
        return Verdict(messages=_shown(hook, outcome.errors.strip() or f"exit status {status}", is_failure=True))
    fields = _json(outcome.output.strip())
    if fields is None:
        # Of the hooks of a prompt and of a start the model gets the plain text, too.
        text = with_ellipsis(outcome.output.strip(), MAXIMUM_REASON_CHARACTERS)
        is_told = hook.event in (HookEvent.PROMPT, HookEvent.SESSION_START)
        return Verdict(context=(text,) if text and is_told else ())
    specific = as_object(fields.get("hookSpecificOutput"))
    answer = as_object(specific.get("decision"))
    if hook.event is HookEvent.PERMISSION and answer.get("behavior") == "deny":
        denial = _reason(_text(answer.get("message")), hook)
        return Verdict(denial, stop=denial if answer.get("interrupt") is True else None)
    decision = specific.get("permissionDecision")
    why = _text(specific.get("permissionDecisionReason")) or _text(fields.get("reason"))
    changed = specific.get("updatedInput")
    return Verdict(
        (_reason(why, hook) if decision == "deny" or fields.get("decision") in ("block", "deny") else None),
        (_reason(why, hook) if decision in ("ask", "defer") else None),
        (_reason(_text(fields.get("stopReason")), hook) if fields.get("continue") is False else None),
        changed if is_object(changed) and changed else None,
        _context(specific),
        _shown(hook, _text(fields.get("systemMessage")), is_failure=False),
    )


def _said(outcome: HookOutcome) -> str:
    return outcome.output.strip() or outcome.errors.strip()


def _json(text: str) -> Mapping[str, Any] | None:
    """Return the JSON object of an output; None if it is something else."""
    try:
        value = json.loads(text)
        if isinstance(value, str):
            value = json.loads(value)
    except (ValueError, RecursionError):
        return None
    return value if is_object(value) else None


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _reason(text: str, hook: Hook) -> str:
    return with_ellipsis(text, MAXIMUM_REASON_CHARACTERS) if text else f"{hook.where} refused it without a reason"


def _context(specific: Mapping[str, Any]) -> tuple[str, ...]:
    text = _text(specific.get("additionalContext"))
    return (with_ellipsis(text, MAXIMUM_REASON_CHARACTERS),) if text else ()


def _shown(hook: Hook, text: str, *, is_failure: bool) -> tuple[str, ...]:
    if not text and not is_failure:
        return ()
    said = with_ellipsis(text or "no text", MAXIMUM_SHOWN_CHARACTERS)
    return (f"{hook.where} failed: {said}" if is_failure else said,)
