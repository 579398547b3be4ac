from isthmus.agent.session.moved_paths import move_paths
from isthmus.agent.session.session import Session
from isthmus.development_tool import ToolCall, ToolCallStatus
from isthmus.events import Prompt, ToolCallUpdate
from isthmus.internal_events import ModelReply, WorktreeUsed
from isthmus.models.port.base import Message, Text, ToolRequest
from isthmus.models.port.message import message_to_json

OLD, NEW = "/data/a/worktrees/s-1", "/other/b/s-1"


def session_in(folder: str) -> Session:
    session = Session("c1")
    session.apply(Prompt("m1", f"Look at {folder}", {"workspace_path": "/git:app"}))
    session.apply(WorktreeUsed(folder))
    arguments = {"file_path": f"{folder}/a.txt", "lines": [f"in {folder}", 1, None], "other": {"path": f"{folder}-2/b"}}
    message = Message("assistant", (Text(f"I write {folder}/a.txt"), ToolRequest("call", "write_file", arguments)))
    session.apply(ModelReply("r1", "model", message_to_json(message)))
    session.apply(ToolCallUpdate(ToolCall("call", ToolCallStatus.PENDING, "write_file", arguments)))
    return session


def test_a_conversation_names_the_folder_of_this_machine() -> None:
    session = session_in(OLD)
    move_paths(session, session.choices.worktrees, NEW)
    assert session.messages[0] == session_in(NEW).messages[0]
    arguments = session.calls["call"].request.arguments
    assert arguments["file_path"] == f"{NEW}/a.txt"
    assert arguments["lines"] == [f"in {NEW}", 1, None]
    assert arguments["other"] == {"path": f"{OLD}-2/b"}, "another session's folder"
    call = session.calls["call"].call
    assert call is not None
    assert call.input_parameters["file_path"] == f"{NEW}/a.txt"


def test_what_does_not_name_the_folder_is_left_as_it_is() -> None:
    session = session_in(OLD)
    messages, calls = list(session.messages), dict(session.calls)
    move_paths(session, (OLD, NEW, "/third"), OLD)
    assert all(one is item for one, item in zip(session.messages, messages, strict=True))
    assert session.calls["call"] is calls["call"]
