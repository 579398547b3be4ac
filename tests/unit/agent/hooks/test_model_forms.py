from dataclasses import replace
from typing import Any

import pytest

from isthmus.agent.hooks.model_forms import (
    NamedRequest,
    UnusableFormError,
    changed_request,
    names_of,
    request_form,
    response_form,
    response_text,
)
from isthmus.models.port.base import (
    Finish,
    Message,
    ModelRequest,
    ModelThought,
    ModelToolResult,
    ProviderState,
    Sampling,
    Text,
    ToolRequest,
    Usage,
    text_of,
)

SIGNED = Text("I look.", ProviderState("gemini", {"thoughtSignature": "s"}))
CALL = ToolRequest("c", "read_file", {"file_path": "secret"})
RESULT = ModelToolResult("c", "read_file", "content")
CONVERSATION = (
    Message("user", (Text("first"),)),
    Message("user", (Text(" and more"),)),
    Message("assistant", (ModelThought("hm"), SIGNED, CALL)),
    Message("user", (RESULT,)),
    Message("assistant", (Text("It is this."),)),
    Message("user", (Text("again"),)),
)
NAMED = NamedRequest("m", ModelRequest("the system prompt", CONVERSATION))
FORMS: list[Any] = [
    {"role": "user", "content": "first and more"},
    {"role": "model", "content": "I look."},
    {"role": "model", "content": "It is this."},
    {"role": "user", "content": "again"},
]


def texts(named: NamedRequest) -> list[str]:
    return [text_of(message) for message in named.request.messages]


def test_a_hook_sees_the_texts_and_the_parameters_alone() -> None:
    assert request_form(NAMED) == {"model": "m", "messages": FORMS, "config": {}}
    request = replace(NAMED.request, max_output_tokens=9, sampling=Sampling(0.5, 0.9, 3))
    config = {"temperature": 0.5, "maxOutputTokens": 9, "topP": 0.9, "topK": 3}
    assert request_form(NamedRequest("m", request))["config"] == config


def test_an_unchanged_form_changes_nothing() -> None:
    assert changed_request(NAMED, request_form(NAMED)) == NAMED
    assert changed_request(NAMED, {}) == NAMED


def test_a_changed_text_leaves_calls_results_and_other_texts_as_they_are() -> None:
    changed = changed_request(NAMED, {"messages": [{"role": "user", "content": "[hidden]"}, *FORMS[1:]]})
    assert texts(changed) == ["[hidden]", "I look.", "", "It is this.", "again"]
    assert changed.request.messages[1:] == CONVERSATION[2:]
    changed = changed_request(NAMED, {"messages": [FORMS[0], {"role": "model", "content": "x"}, *FORMS[2:]]})
    assert changed.request.messages[1].parts == (ModelThought("hm"), Text("x"), CALL)


def test_more_messages_are_added_and_fewer_leave_the_rest() -> None:
    changed = changed_request(NAMED, {"messages": [*FORMS, {"role": "user", "content": "at the end"}]})
    assert texts(changed)[-2:] == ["again", "at the end"]
    assert texts(changed_request(NAMED, {"messages": [{"role": "user", "content": "x"}]}))[-1] == "again"


def test_another_model_and_its_parameters_are_taken_over() -> None:
    changed = changed_request(NAMED, {"model": "other", "config": {"temperature": 0, "maxOutputTokens": 5, "topK": 2}})
    assert (changed.model, changed.request.max_output_tokens) == ("other", 5)
    assert changed.request.sampling == Sampling(0, None, 2)
    assert changed.request.messages == CONVERSATION


@pytest.mark.parametrize(
    ("form", "said"),
    [
        (["x"], "llm_request must be an object"),
        ({"model": 1}, "llm_request.model must be a name"),
        ({"messages": "x"}, "llm_request.messages must be a list"),
        ({"messages": [{"role": "system", "content": "x"}]}, "'system' and str"),
        ({"messages": [{"role": "user", "content": [1]}]}, "'user' and list"),
        ({"messages": [None]}, "None and NoneType"),
        ({"messages": [FORMS[0], {"role": "user", "content": "x"}]}, "cannot become one of the other side"),
        ({"config": [1]}, "llm_request.config must be an object"),
        ({"config": {"temperature": "hot"}}, "temperature must be a number"),
        ({"config": {"topP": float("nan")}}, "topP must be a number"),
        ({"config": {"maxOutputTokens": 10**400}}, "maxOutputTokens must be a number"),
        ({"config": {"stopSequences": ["x"]}}, "cannot have 'stopSequences'"),
    ],
)
def test_a_form_that_cannot_be_carried_out_is_refused(form: Any, said: str) -> None:
    with pytest.raises(UnusableFormError, match=said):
        changed_request(NAMED, form)


def test_a_hook_sees_an_answer_as_gemini_cli_shows_it() -> None:
    assert response_form("so", None, None) == {
        "text": "so",
        "candidates": [{"content": {"role": "model", "parts": ["so"]}, "index": 0}],
    }
    last = response_form("", Finish.TOOL_CALLS, Usage(10, 7, thoughts=2))
    assert last["candidates"][0] == {"content": {"role": "model", "parts": []}, "index": 0, "finishReason": "STOP"}
    assert last["usageMetadata"] == {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 17}


def answer(*parts: object) -> Any:
    return {"candidates": [{"content": {"role": "model", "parts": [*parts]}}]}


@pytest.mark.parametrize(
    ("form", "text"),
    [(answer("a", "b"), "ab"), (answer({"text": "a"}), "a"), (answer(), None), ({"candidates": []}, None)],
)
def test_the_text_of_a_hooks_answer_is_read(form: Any, text: str | None) -> None:
    assert response_text(form) == text


@pytest.mark.parametrize("form", ["x", {}, {"candidates": {}}, answer(1), answer({"functionCall": {"name": "x"}})])
def test_an_answer_of_another_form_is_refused(form: Any) -> None:
    with pytest.raises(UnusableFormError):
        response_text(form)


def test_names_of_tools_must_be_a_list_of_texts() -> None:
    assert names_of({"allowedFunctionNames": ["a", "b"]}) == {"a", "b"}
    assert names_of({}) == frozenset()
    for odd in ("a", [1], {"a": 1}):
        with pytest.raises(UnusableFormError):
            names_of({"allowedFunctionNames": odd})
