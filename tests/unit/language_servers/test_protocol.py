"""Messages to a language server, and its answers that count for the text that was sent last."""

from pathlib import Path
from typing import Any

import pytest

from isthmus.ide.editor import Diagnostic, Position, Range, Severity
from isthmus.language_servers.protocol import MAXIMUM_OPEN_FILES, ServerProtocol
from isthmus.language_servers.servers import server_for
from isthmus.rpc.messages import RpcError

FILE = Path("/w/a b.py")


def protocol(name: str = "a.py") -> ServerProtocol:
    server = server_for(Path(name))
    assert server is not None
    return ServerProtocol(server, Path("/w"))


def publish(at: ServerProtocol, message: str, version: int | None, uri: str = FILE.as_uri()) -> bool:
    where = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}
    found = [{"range": where, "severity": 1, "message": message}]
    params: dict[str, Any] = {"uri": uri, "diagnostics": found}
    return at.notified("textDocument/publishDiagnostics", params if version is None else {**params, "version": version})


def messages(at: ServerProtocol) -> list[str] | None:
    found = at.published(FILE)
    return None if found is None else [each.message for each in found]


def test_a_file_is_opened_once_and_then_changed() -> None:
    at = protocol()
    (opened,) = at.change(FILE, "1")
    assert (opened.method, opened.params["textDocument"]["uri"]) == ("textDocument/didOpen", "file:///w/a%20b.py")
    (changed,) = at.change(FILE, "2")
    assert changed.method == "textDocument/didChange"
    assert changed.params["textDocument"]["version"] == 2
    assert changed.params["contentChanges"] == [{"text": "2"}]


def test_only_what_is_published_of_the_last_text_counts() -> None:
    at = protocol()
    at.change(FILE, "1")
    assert messages(at) is None
    assert publish(at, "one", 1)
    assert messages(at) == ["one"]
    at.change(FILE, "2")
    assert messages(at) is None
    assert not publish(at, "late", 1)
    assert messages(at) is None
    assert publish(at, "two", None, "file:///w/a b.py")
    assert messages(at) == ["two"]


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("textDocument/publishDiagnostics", {}),
        ("textDocument/publishDiagnostics", {"uri": "file:///w/a%20b.py", "diagnostics": 3}),
        ("textDocument/publishDiagnostics", {"uri": "file:///w/other.py", "diagnostics": []}),
        ("window/logMessage", {"message": "x"}),
    ],
)
def test_other_messages_say_nothing(method: str, params: dict[str, Any]) -> None:
    at = protocol()
    at.change(FILE, "1")
    assert not at.notified(method, params)
    assert messages(at) is None


def test_the_number_of_open_files_is_limited() -> None:
    at = protocol()
    for number in range(MAXIMUM_OPEN_FILES):
        at.change(Path(f"/w/{number}.py"), "")
    closed, opened = at.change(FILE, "")
    assert (closed.method, closed.params["textDocument"]["uri"]) == ("textDocument/didClose", "file:///w/0.py")
    assert opened.method == "textDocument/didOpen"
    (again, reopened) = at.change(Path("/w/0.py"), "")
    assert [again.method, reopened.method] == ["textDocument/didClose", "textDocument/didOpen"]


def test_a_server_is_asked_for_diagnostics_if_it_offers_that() -> None:
    at = protocol()
    at.initialized({"capabilities": {"diagnosticProvider": {"interFileDependencies": True}}})
    assert [each.method for each in at.questions(FILE)] == ["textDocument/diagnostic"]
    assert at.answered(FILE, [{"kind": "full", "items": []}]) == ()
    assert at.answered(FILE, [{"kind": "full", "items": [3]}]) is None
    at.initialized({"capabilities": {}})
    assert at.questions(FILE) == ()


def test_a_server_gets_its_settings_and_no_other_request_is_carried_out() -> None:
    at = protocol()
    asked = {"items": [{"section": "python.analysis"}, {"section": "other"}, 3]}
    everything = {"python": {"analysis": {"diagnosticMode": "openFilesOnly"}}}
    assert at.asked("workspace/configuration", asked) == [{"diagnosticMode": "openFilesOnly"}, None, everything]
    assert at.asked("client/registerCapability", {}) is None
    with pytest.raises(RpcError, match="workspace/applyEdit is not supported"):
        at.asked("workspace/applyEdit", {})


def test_a_server_that_says_its_status_is_asked_once_it_has_loaded() -> None:
    at = protocol("a.rs")
    assert not at.has_loaded
    assert not at.notified("experimental/serverStatus", {"quiescent": False})
    assert at.notified("experimental/serverStatus", {"quiescent": True})
    assert at.has_loaded


def test_a_server_that_passes_requests_on_to_tsserver_is_asked_by_its_command() -> None:
    at = protocol("a.ts")
    at.initialized({"capabilities": {"executeCommandProvider": {"commands": ["typescript.tsserverRequest"]}}})
    path = Path("/w/a.ts")
    assert [(each.method, each.params["arguments"]) for each in at.questions(path)] == [
        ("workspace/executeCommand", ["syntacticDiagnosticsSync", {"file": "/w/a.ts", "includeLinePosition": True}]),
        ("workspace/executeCommand", ["semanticDiagnosticsSync", {"file": "/w/a.ts", "includeLinePosition": True}]),
    ]
    where = {"startLocation": {"line": 2, "offset": 1}, "endLocation": {"line": 2, "offset": 4}}
    error = {"message": "Cannot find name 'old'.", "start": 28, "length": 3, "category": "error", "code": 2304, **where}
    found = at.answered(path, [{"success": True, "body": []}, {"success": True, "body": [error]}])
    place = Range(Position(1, 0), Position(1, 3))
    assert found == (Diagnostic("/w/a.ts", place, Severity.ERROR, "Cannot find name 'old'.", "typescript", "2304"),)


@pytest.mark.parametrize("odd", [None, {"success": False, "body": []}, {"success": True}, {"success": True, "body": 3}])
def test_an_answer_of_another_form_says_nothing_of_a_file(odd: object) -> None:
    at = protocol("a.ts")
    at.initialized({"capabilities": {"executeCommandProvider": {"commands": ["typescript.tsserverRequest"]}}})
    assert at.answered(Path("/w/a.ts"), [{"success": True, "body": []}, odd]) is None
