"""Messages of a kernel that runs code, collected: limits, odd messages, and those of other clients."""

import base64
from typing import Any

import pytest

from isthmus.editors.jupyter.messages import KernelDiedError, OutputLimits, RunningExecution, execute_request
from isthmus.ide.editor import CodeExecution, EditorError, ExecutionImage, ExecutionText


def _message(kind: str, parent: str = "ours", **content: Any) -> dict[str, Any]:
    return {"header": {"msg_type": kind}, "parent_header": {"msg_id": parent}, "content": content}


def _after(*messages: dict[str, Any], limits: OutputLimits = OutputLimits()) -> CodeExecution:
    running = RunningExecution("ours", limits)
    for message in messages:
        running.feed(message)
    return running.result()


def _image(data: bytes, display_id: str | None = None) -> dict[str, Any]:
    transient = {"display_id": display_id} if display_id else {}
    return _message("display_data", data={"image/png": base64.b64encode(data).decode()}, transient=transient)


def test_a_request_lets_nothing_be_asked_of_the_user() -> None:
    request = execute_request("x", "session")
    assert request["content"]["allow_stdin"] is False
    assert request["header"]["msg_id"] != execute_request("x", "session")["header"]["msg_id"]


def test_messages_of_other_executions_are_passed_over() -> None:
    assert (
        _after(_message("stream", "theirs", text="x"), _message("error", "theirs", traceback=["y"])) == CodeExecution()
    )


def test_it_is_finished_when_the_kernel_is_idle_and_has_replied_in_either_order() -> None:
    idle, reply = _message("status", execution_state="idle"), _message("execute_reply", status="ok")
    for first, second in ((idle, reply), (reply, idle)):
        running = RunningExecution("ours")
        running.feed(_message("status", execution_state="busy"))
        assert running.has_started
        running.feed(first)
        assert not running.is_finished
        running.feed(second)
        assert running.is_finished


@pytest.mark.parametrize("state", ["dead", "restarting", "autorestarting"])
def test_a_kernel_that_died_is_an_error_whoever_says_it(state: str) -> None:
    with pytest.raises(KernelDiedError, match="variables are lost"):
        _after({"msg_type": "status", "parent_header": {}, "content": {"execution_state": state}})


def test_code_that_the_kernel_did_not_run_is_an_error() -> None:
    with pytest.raises(EditorError, match="a cell that ran before it failed"):
        _after(_message("execute_reply", status="aborted"))


def test_text_past_the_limit_is_left_out_and_said_and_the_traceback_stays() -> None:
    found = _after(
        _message("stream", text="12345678"),
        _message("stream", text="90abc"),
        _message("execute_result", data={"text/plain": "more"}),
        _message("error", traceback=["boom"]),
        limits=OutputLimits(text_characters=10),
    )
    assert [output.text for output in found.outputs if isinstance(output, ExecutionText)] == [
        "1234567890",
        "[output left out: 7 characters past the first 10]",
        "boom",
    ]
    assert found.is_error


def test_images_past_the_limit_are_left_out_and_said() -> None:
    found = _after(_image(b"one"), _image(b"two"), limits=OutputLimits(images=1))
    assert found.outputs[0] == ExecutionImage(b"one", "image/png")
    assert found.outputs[1:] == (ExecutionText("[output left out: 1 images past 1 or 20 MiB]"),)


def test_outputs_without_end_are_left_out_and_said() -> None:
    texts = [_message("display_data", data={"text/plain": str(number)}) for number in range(5)]
    found = _after(*texts, limits=OutputLimits(outputs=2))
    assert found.outputs[2:] == (ExecutionText("[output left out: 3 outputs past the first 2]"),)


def test_a_display_is_replaced_where_it_stands_and_those_of_others_are_not_shown() -> None:
    found = _after(
        _image(b"first", "plot"),
        _message("stream", text="after\n"),
        _message("update_display_data", data={"text/plain": "'new'"}, transient={"display_id": "plot"}),
        _message("update_display_data", data={"text/plain": "'old'"}, transient={"display_id": "of another cell"}),
    )
    assert found.outputs == (ExecutionText("'new'"), ExecutionText("after\n"))


def test_cleared_outputs_are_gone_at_once_or_when_the_next_one_comes() -> None:
    stream = _message("stream", text="x\n")
    assert _after(stream, _message("clear_output", wait=False)) == CodeExecution()
    assert _after(stream, _message("clear_output", wait=True)) == CodeExecution((ExecutionText("x\n"),))
    after = _message("execute_result", data={"text/plain": "1"})
    assert _after(stream, _message("clear_output", wait=True), after) == CodeExecution((ExecutionText("1"),))


def test_a_value_without_a_text_form_says_which_forms_it_has() -> None:
    found = _after(_message("display_data", data={"application/x-thing": {}}))
    assert found.outputs == (ExecutionText("[application/x-thing: has no text form]"),)


def test_an_image_that_is_none_falls_back_to_its_text() -> None:
    found = _after(_message("display_data", data={"image/png": "*", "text/plain": ["<Fig", "ure>"]}))
    assert found.outputs == (ExecutionText("<Figure>"),)


@pytest.mark.parametrize("content", [{}, {"text": None}, {"data": []}, {"payload": 3}, {"traceback": "x"}])
def test_messages_of_another_form_do_no_harm(content: dict[str, Any]) -> None:
    kinds = ("stream", "display_data", "update_display_data", "error", "execute_reply", "clear_output", "status", "x")
    for kind in kinds:
        _after(_message(kind, **content))
    _after({}, {"content": 1, "parent_header": "x"})
