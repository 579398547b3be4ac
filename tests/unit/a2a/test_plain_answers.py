"""The client of a server without the extension, which sends the answer as an artifact and keeps it in the history."""

from typing import Any

from isthmus.events import AgentEvent, ArtifactUpdate, StateChange, TaskState, TextContent
from support.client_decoding import Decoding

TEXT = [{"kind": "text", "text": "You said: hello"}]
IDS = {"taskId": "task", "contextId": "context"}
ARTIFACT = {"artifactId": "m1", "parts": TEXT}
UPDATE = {**IDS, "kind": "artifact-update", "artifact": ARTIFACT, "lastChunk": True}
ENDED = {**IDS, "kind": "status-update", "status": {"state": "completed"}, "final": True}


def task(state: str, *, artifact_id: str = "m1") -> dict[str, Any]:
    """Return a Task as Isthmus sends it to clients without the extension."""
    history = [{"kind": "message", "role": "agent", "messageId": "m1", "parts": TEXT}]
    found = {"kind": "task", "id": "task", "contextId": "context", "status": {"state": state}}
    artifacts = [{**ARTIFACT, "artifactId": artifact_id}]
    return found if state == "working" else {**found, "history": history, "artifacts": artifacts}


def events(*items: Any) -> list[AgentEvent]:
    """Return the events of a stream without event ids, and of the Task that a client asks for after it."""
    decoder = Decoding(None)
    return [delivery.event for item in items for delivery in decoder.decode(item)]


def test_an_answer_that_came_as_an_artifact_is_not_repeated_from_the_history() -> None:
    found = events(task("working"), UPDATE, ENDED, task("completed"))
    assert [event for event in found if isinstance(event, TextContent)] == []
    assert [event.artifact_id for event in found if isinstance(event, ArtifactUpdate)] == ["m1"]
    assert found[-1] == StateChange(TaskState.COMPLETED)


def test_a_task_that_has_ended_shows_its_answer_once() -> None:
    found = events(task("completed"))
    assert [event for event in found if not isinstance(event, StateChange)] == [TextContent("m1", "You said: hello")]


def test_an_artifact_of_the_agents_own_is_shown_beside_the_text() -> None:
    found = events(task("completed", artifact_id="report"))
    assert [type(event) for event in found] == [TextContent, ArtifactUpdate, StateChange]
