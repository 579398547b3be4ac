"""Interrupts of LangGraph as questions to a user, and the user's answers as what the graph receives.

Five forms have options:

- the requests of LangChain's ``HumanInTheLoopMiddleware`` (``interrupt_on``) for all calls of a message or for each one
- the requests of the older ``HumanInterrupt``
- a payload with ``options``
- a ``response_schema`` of a yes-or-no or of an enumeration

All others are asked in words; the answer is the text of the user's message, or its data if it has some.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from langgraph.types import Interrupt

from isthmus.a2a.frameworks.shown import REJECTED, call_text, edited_arguments, jsonable, text_of
from isthmus.agent.approval.grants import CANCEL, PROCEED_ONCE
from isthmus.agent.hosted import OPTIONS
from isthmus.development_tool import (
    ConfirmationDetails,
    ConfirmationOption,
    FileDiff,
    GenericDetails,
    ToolCallConfirmation,
)
from isthmus.events import Prompt
from isthmus.record import record

QUESTION_KEYS = ("question", "message", "description", "query", "text", "prompt")
"""Members of a payload that may hold the words of a question."""
CONTENT_KEYS = ("content", "new_content")
"""Arguments of a tool that may hold the new content of the file that ``file_path`` names."""
ALLOW, REJECT = OPTIONS


@record
class Question:
    """One question with options; ``values`` are those that the graph receives, by option, None for a tool call.

    ``call_id`` is the id of the call that it is about, if the payload names it.
    """

    tool: str
    arguments: Mapping[str, Any]
    details: ConfirmationDetails
    options: tuple[ConfirmationOption, ...]
    values: Mapping[str, Any] | None = None
    call_id: str | None = None


def questions_of(interrupt: Interrupt[Any]) -> Sequence[Question]:
    """Return the questions of an interrupt that have options; none if it is to be asked in words."""
    value: Any = interrupt.value
    if _is_middleware(value):
        return [_of_action(item, allowed) for item, allowed in _actions(value)]
    if _is_tool_approval(value):
        return [_of_action(value, _decisions_in(interrupt.response_schema))]
    if _is_human_interrupt(value):
        return [_of_request(item) for item in (cast("Sequence[Any]", value) if isinstance(value, list) else [value])]
    choices = _choices(value, interrupt.response_schema)
    if not choices:
        return []
    options = tuple(ConfirmationOption(f"option_{number}", name) for number, (name, _) in enumerate(choices, start=1))
    values = {option.id: chosen for option, (_, chosen) in zip(options, choices, strict=True)}
    return [Question("question", {}, GenericDetails(words_of(interrupt)), options, values)]


def words_of(interrupt: Interrupt[Any]) -> str:
    """Return the words of an interrupt: its text, a member that holds one, or its payload as JSON."""
    value: Any = interrupt.value
    if isinstance(value, Mapping):
        for key in QUESTION_KEYS:
            words = cast("Mapping[str, object]", value).get(key)
            if isinstance(words, str) and words.strip():
                return words
    return text_of(cast(object, value))


def answer_in_words(interrupt: Interrupt[Any], message: Prompt) -> Any:
    """Return what the graph receives for a message of the user, also where options were offered."""
    for part in message.content:
        if part.data is not None:
            return part.data
    value: Any = interrupt.value
    text = message.text
    if _is_middleware(value):
        return {"decisions": [_decision_in_words(allowed, text) for _, allowed in _actions(value)]}
    if _is_tool_approval(value):
        return _decision_in_words(_decisions_in(interrupt.response_schema), text)
    if _is_human_interrupt(value):
        response = {"type": "response", "args": text}
        return [response for _ in cast("Sequence[Any]", value)] if isinstance(value, list) else response
    for name, chosen in _choices(value, interrupt.response_schema):
        if text.strip().casefold() == name.casefold():
            return chosen
    schema = interrupt.response_schema
    if isinstance(schema, dict) and schema.get("type") != "string":
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text


def answer_of(interrupt: Interrupt[Any], answers: Sequence[ToolCallConfirmation]) -> Any:
    """Return what the graph receives for the options that the user chose, in the order of the questions."""
    value: Any = interrupt.value
    questions = questions_of(interrupt)
    decided = list(zip(questions, answers, strict=True))
    if _is_middleware(value):
        return {"decisions": [_decision(question, answer) for question, answer in decided]}
    if _is_tool_approval(value):
        return _decision(*decided[0])
    if _is_human_interrupt(value):
        responses = [_response(question, answer) for question, answer in decided]
        return responses if isinstance(value, list) else responses[0]
    ((question, answer),) = decided
    return (question.values or {}).get(answer.selected_option_id)


def _is_middleware(value: object) -> bool:
    return isinstance(value, Mapping) and isinstance(cast("Mapping[str, object]", value).get("action_requests"), list)


def _is_tool_approval(value: object) -> bool:
    return isinstance(value, Mapping) and cast("Mapping[str, object]", value).get("type") == "tool_approval"


def _actions(value: Mapping[str, Any]) -> Sequence[tuple[Mapping[str, Any], Sequence[str]]]:
    """Return the actions of a request of the middleware, each with the decisions that are allowed."""
    reviews = {item["action_name"]: item["allowed_decisions"] for item in value.get("review_configs", ())}
    return [(item, reviews.get(item["name"], ("approve", "reject"))) for item in value["action_requests"]]


def _decisions_in(schema: object) -> Sequence[str]:
    """Return the decisions that a schema of answers allows: the constants of its members ``type``."""
    if isinstance(schema, Mapping):
        described = cast("Mapping[str, Any]", schema)
        members: Mapping[str, Any] = described.get("properties", {})
        kind: object = members.get("type")
        named: Mapping[str, object] = cast("Mapping[str, object]", kind) if isinstance(kind, Mapping) else {}
        own = [str(named["const"])] if "const" in named else []
        return [*own, *(each for item in described.values() for each in _decisions_in(item))]
    if isinstance(schema, list):
        return [each for item in cast("Sequence[object]", schema) for each in _decisions_in(item)]
    return []


def _decision_in_words(allowed: Sequence[str], text: str) -> Mapping[str, Any]:
    """Return the decision for a message in place of an option: a response if that is allowed, otherwise a no."""
    return {"type": "respond" if "respond" in allowed and "reject" not in allowed else "reject", "message": text}


def _is_human_interrupt(value: object) -> bool:
    items: Sequence[object] = cast("Sequence[object]", value) if isinstance(value, list) else [value]
    return bool(items) and all(isinstance(item, Mapping) and "action_request" in item for item in items)


def _of_action(action: Mapping[str, Any], allowed: Sequence[str]) -> Question:
    name, arguments = str(action["name"]), jsonable(action.get("args", action.get("arguments", {})))
    described = action.get("description") or call_text(name, arguments)
    may_edit = "edit" in allowed
    options = [option for option, kind in ((ALLOW, "approve"), (REJECT, "reject")) if kind in allowed] or [REJECT]
    if may_edit and ALLOW not in options:
        options.insert(0, ALLOW)
    details = _details(str(described), arguments, may_edit)
    return Question(name, arguments, details, tuple(options), call_id=action.get("tool_call_id"))


def _of_request(request: Mapping[str, Any]) -> Question:
    action, config = request["action_request"], request.get("config", {})
    name, arguments = str(action["action"]), jsonable(action.get("args", {}))
    described = request.get("description") or call_text(name, arguments)
    may_edit = bool(config.get("allow_edit"))
    options = [ALLOW] if config.get("allow_accept", True) or may_edit else []
    options += [ConfirmationOption(CANCEL, "Ignore")] if config.get("allow_ignore") else [REJECT]
    return Question(name, arguments, _details(str(described), arguments, may_edit), tuple(options))


def _details(described: str, arguments: Mapping[str, Any], may_edit: bool) -> ConfirmationDetails:
    """Return the details of a question: a file that the user can edit if the graph allows that, otherwise words."""
    path = arguments.get("file_path")
    for key in CONTENT_KEYS:
        content = arguments.get(key)
        if may_edit and isinstance(path, str) and isinstance(content, str):
            return FileDiff(path.rpartition("/")[2], path, content)
    return GenericDetails(described)


def _decision(question: Question, answer: ToolCallConfirmation) -> Mapping[str, Any]:
    if answer.selected_option_id != PROCEED_ONCE:
        return {"type": "reject", "message": REJECTED}
    if (edited := _edited(question, answer)) is None:
        return {"type": "approve"}
    return {"type": "edit", "edited_action": {"name": question.tool, "args": dict(edited)}}


def _response(question: Question, answer: ToolCallConfirmation) -> Mapping[str, Any]:
    if answer.selected_option_id != PROCEED_ONCE:
        return {"type": "ignore", "args": None}
    edited = _edited(question, answer)
    if edited is not None:
        return {"type": "edit", "args": {"action": question.tool, "args": dict(edited)}}
    return {"type": "accept", "args": None}


def _edited(question: Question, answer: ToolCallConfirmation) -> Mapping[str, Any] | None:
    return edited_arguments(question.arguments, question.details, answer)


def _choices(value: object, schema: object) -> Sequence[tuple[str, Any]]:
    """Return the choices of a payload or a schema: the words for the user, and the values for the graph."""
    if isinstance(value, Mapping):
        options = cast("Mapping[str, object]", value).get("options")
        if isinstance(options, list) and options:
            return [_choice(item) for item in cast("Sequence[object]", options)]
    if isinstance(schema, Mapping):
        described = cast("Mapping[str, object]", schema)
        if described.get("type") == "boolean":
            return [("Yes", True), ("No", False)]
        if isinstance(members := described.get("enum"), list):
            return [(text_of(item), item) for item in cast("Sequence[object]", members)]
    return []


def _choice(item: object) -> tuple[str, Any]:
    if isinstance(item, Mapping):
        named = cast("Mapping[str, object]", item)
        name = next((named[key] for key in ("name", "label", "title", "value", "id") if key in named), named)
        return text_of(name), named.get("value", named.get("id", jsonable(named)))
    return text_of(item), item
