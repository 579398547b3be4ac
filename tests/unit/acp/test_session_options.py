"""Modes and models of a session. The JSON that clients see fits the official schema."""

import pytest

from isthmus.acp.front.session_options import SessionOptions
from isthmus.acp.v1.sessions import NewSessionResponse
from isthmus.acp.v1.updates import ConfigOptionsUpdate, ModeUpdate
from isthmus.encoding.codec import to_camel_json
from isthmus.rpc.messages import RpcError
from support import acp_schema

MODES = [
    {"id": "default", "name": "Default", "description": "Asks before it edits files or runs commands"},
    {"id": "auto_edit", "name": "Auto edit", "description": "Edits files without asking; asks before commands"},
    {"id": "plan", "name": "Plan", "description": "Only reads"},
    {"id": "yolo", "name": "YOLO", "description": "Never asks"},
]


def test_modes_are_shown_twice_and_the_model_once() -> None:
    options = SessionOptions("plan", "gemini:a", ("gemini:b", "gemini:a"))
    response = to_camel_json(NewSessionResponse("s1", options.modes, options.config_options))
    acp_schema.check("NewSessionResponse", response)
    assert response == {
        "sessionId": "s1",
        "modes": {"currentModeId": "plan", "availableModes": MODES},
        "configOptions": [
            {
                "type": "select",
                "id": "mode",
                "name": "Mode",
                "description": "What is asked before it happens",
                "category": "mode",
                "currentValue": "plan",
                "options": [
                    {"value": mode["id"], "name": mode["name"], "description": mode["description"]} for mode in MODES
                ],
            },
            {
                "type": "select",
                "id": "model",
                "name": "Model",
                "description": "Another model reads the conversation anew, without a prompt cache",
                "category": "model",
                "currentValue": "gemini:a",
                "options": [{"value": "gemini:a", "name": "gemini:a"}, {"value": "gemini:b", "name": "gemini:b"}],
            },
        ],
    }


def test_without_a_known_model_there_is_no_option_for_it() -> None:
    assert [option.id for option in SessionOptions().config_options] == ["mode"]


def test_changes_are_updates_of_the_schema() -> None:
    changed = SessionOptions(model="m").with_mode("yolo")
    mode = to_camel_json(ModeUpdate(changed.mode))
    assert mode == {"sessionUpdate": "current_mode_update", "currentModeId": "yolo"}
    options = to_camel_json(ConfigOptionsUpdate(changed.config_options))
    assert options["sessionUpdate"] == "config_option_update"
    assert [option["currentValue"] for option in options["configOptions"]] == ["yolo", "m"]
    acp_schema.check_update(mode)
    acp_schema.check_update(options)


def test_only_what_the_client_has_set_goes_to_the_agent() -> None:
    options = SessionOptions("auto_edit", "m")
    assert options.settings == {}
    assert options.with_mode("auto_edit").settings == {"approval_mode": "auto_edit"}
    assert options.with_value("model", "n").settings == {"model": "n"}
    assert options.with_value("mode", "plan").with_value("model", "n").settings == {
        "approval_mode": "plan",
        "model": "n",
    }


@pytest.mark.parametrize(
    ("config_id", "value", "message"),
    [
        ("mode", "wild", "modeId: expected one of default, auto_edit, plan, yolo, received 'wild'"),
        ("speed", "fast", "configId: expected mode or model, received 'speed'"),
        ("model", "", "value: expected a string of 1 to 200 characters"),
        ("model", "x" * 201, "value: expected a string of 1 to 200 characters"),
        ("mode", True, "value: expected a string"),
        ("mode", None, "value: expected a string"),
    ],
)
def test_values_that_do_not_exist_are_refused(config_id: str, value: object, message: str) -> None:
    with pytest.raises(RpcError, match=message) as caught:
        SessionOptions().with_value(config_id, value)
    assert caught.value.code == -32602


@pytest.mark.parametrize(
    ("options", "found", "mode"),
    [
        (SessionOptions("default"), "auto_edit", "auto_edit"),
        (SessionOptions("plan"), None, "plan"),
        (SessionOptions("default"), "careful", "default"),
        (SessionOptions("default").with_mode("plan"), "yolo", "plan"),
    ],
)
def test_a_reopened_session_states_its_mode_in_every_prompt(options: SessionOptions, found: object, mode: str) -> None:
    reopened = options.in_force(found, is_new=False)
    assert (reopened.mode, reopened.settings) == (mode, {"approval_mode": mode})


def test_a_new_session_shows_the_mode_in_force_and_states_it_to_a_server_alone() -> None:
    for is_elsewhere, settings in ((False, {}), (True, {"approval_mode": "plan"})):
        options = SessionOptions("default", is_elsewhere=is_elsewhere).in_force("plan", is_new=True)
        assert (options.mode, options.settings) == ("plan", settings)
        assert options.with_mode("yolo").settings == {"approval_mode": "yolo"}


def test_an_agent_without_our_modes_is_sent_none() -> None:
    options = SessionOptions(has_modes=False, is_elsewhere=True).in_force("plan", is_new=False)
    assert (options.modes, options.settings) == (None, {})


def test_the_effort_is_an_option_of_the_schemas_category() -> None:
    options = SessionOptions(model="m", effort="default").with_value("effort", "high")
    effort = to_camel_json(ConfigOptionsUpdate(options.config_options))["configOptions"][-1]
    acp_schema.check_update(to_camel_json(ConfigOptionsUpdate(options.config_options)))
    assert (effort["id"], effort["category"], effort["currentValue"]) == ("effort", "thought_level", "high")
    assert [item["value"] for item in effort["options"]] == ["default", "low", "medium", "high"]
    assert options.settings == {"effort": "high"}
    with pytest.raises(RpcError, match="expected one of default, low, medium, high, received 'most'"):
        options.with_value("effort", "most")
    with pytest.raises(RpcError, match="expected mode or model, received 'effort'"):
        SessionOptions(model="m").with_value("effort", "high")


def test_the_effort_that_is_in_force_is_shown_unless_the_client_has_chosen_one() -> None:
    options = SessionOptions(effort="default")
    assert options.with_known_effort("low").effort == "low"
    assert options.with_known_effort("low").settings == {}
    assert options.with_known_effort(None).effort == "default"
    assert options.with_known_effort("other").effort == "default"
    assert options.with_value("effort", "high").with_known_effort("low").effort == "high"
    assert SessionOptions().with_known_effort("low").effort == ""
