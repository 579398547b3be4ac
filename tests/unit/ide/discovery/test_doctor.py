"""The state of discovery files and the obstacles for a CLI, from facts alone."""

from collections.abc import Mapping

import pytest

from isthmus.ide.cli_choice import Announcement, Here
from isthmus.ide.discovery.doctor import CompanionAnnouncement, Examination, State, examine, ports_to_try
from isthmus.ide.discovery.protocols import AGENT_CLIS


def examined(
    *files: Announcement,
    environment: Mapping[str, str] | None = None,
    living: tuple[int, ...] = (),
    open_ports: tuple[int, ...] = (),
    running: tuple[CompanionAnnouncement, ...] = (),
    in_container: bool = False,
) -> Examination:
    here = Here("/project", environment or {}, None, in_container, frozenset(living), frozenset(open_ports))
    return examine(files, here, running)


LOCK = Announcement("Claude Code", "/home/me/.claude/ide/1001.lock", None, 1001, 10, ("/project",), "Vim")


@pytest.mark.parametrize(
    ("living", "open_ports", "state", "told", "is_sweepable"),
    [
        ((10,), (1001,), State.ALIVE, "", False),
        ((), (1001,), State.ALIVE, "another container", False),
        ((10,), (), State.STALE, "process 10 lives", False),
        ((), (), State.STALE, "process 10 is gone", True),
    ],
    ids=["both", "port-alone", "process-alone", "none"],
)
def test_a_file_is_stale_without_a_listener_and_swept_only_without_its_process_too(
    living: tuple[int, ...], open_ports: tuple[int, ...], state: State, told: str, is_sweepable: bool
) -> None:
    (finding,) = examined(LOCK, living=living, open_ports=open_ports).findings
    assert (finding.state, finding.is_sweepable) == (state, is_sweepable)
    assert told in " ".join(finding.reasons)


def test_a_file_that_cannot_be_read_says_why_and_is_never_swept() -> None:
    broken = Announcement("Qwen Code", "/home/me/.qwen/ide/1.lock", "it belongs to another user (uid 5)")
    (finding,) = examined(broken).findings
    assert (finding.state, finding.reasons, finding.is_sweepable) == (State.UNUSABLE, (broken.problem,), False)


def test_a_file_without_a_process_is_never_swept() -> None:
    nameless = Announcement("Qwen Code", "/home/me/.qwen/ide/1001.lock", None, 1001, None, ("/project",), "Vim")
    (finding,) = examined(nameless).findings
    assert (finding.state, finding.is_sweepable) == (State.STALE, False)


def test_all_is_well_as_soon_as_one_cli_connects() -> None:
    assert examined(LOCK, living=(10,), open_ports=(1001,)).is_well
    assert not examined(LOCK, living=(10,)).is_well


@pytest.mark.parametrize(
    ("environment", "is_told"),
    [
        ({"http_proxy": "http://proxy"}, True),
        ({"ALL_PROXY": "socks://proxy", "NO_PROXY": "example.org"}, True),
        ({"http_proxy": "http://proxy", "no_proxy": "example.org, 127.0.0.1"}, False),
        ({"http_proxy": "http://proxy", "NO_PROXY": "*"}, False),
        ({}, False),
    ],
)
def test_a_proxy_that_loopback_is_not_excepted_from_is_told(environment: dict[str, str], is_told: bool) -> None:
    assert any("NO_PROXY" in hazard for hazard in examined(environment=environment).hazards) is is_told


def test_a_companion_that_announces_itself_in_another_temporary_folder_is_told() -> None:
    elsewhere = CompanionAnnouncement(1001, "/other/gemini/ide/gemini-ide-server-1-1001.json", ("/project",))
    (hazard,) = examined(running=(elsewhere,)).hazards
    assert "TMPDIR=/other" in hazard
    assert examined(running=(CompanionAnnouncement(1, elsewhere.discovery_file, ("/another",)),)).hazards == ()


def test_a_container_is_told_when_nothing_is_found_in_it() -> None:
    assert len(examined(in_container=True).hazards) == 1
    assert examined(LOCK, in_container=True, living=(10,), open_ports=(1001,)).hazards == ()


def test_ports_of_files_and_variables_are_tried_and_no_others() -> None:
    variables = {"GEMINI_CLI_IDE_SERVER_PORT": "1002", "CLAUDE_CODE_SSE_PORT": "none", "QWEN_CODE_IDE_SERVER_PORT": "0"}
    assert ports_to_try([LOCK], variables) == {1001, 1002}


def test_an_editor_of_another_cli_is_offered_by_the_bridge_where_no_companion_runs() -> None:
    def advice(*running: CompanionAnnouncement) -> dict[str, bool]:
        found = examined(LOCK, living=(10,), open_ports=(1001,), running=running).choices
        return {choice.cli: "`isthmus bridge` here lets" in choice.advice for choice in found}

    assert advice() == {cli.name: cli.name != "Claude Code" for cli in AGENT_CLIS}
    assert not any(advice(CompanionAnnouncement(40123, "/tmp/gemini/ide/x.json", ("/project",))).values())
    assert any(advice(CompanionAnnouncement(40123, "/tmp/gemini/ide/x.json", ("/elsewhere",))).values())


def test_a_companion_that_is_suspended_is_not_said_to_answer() -> None:
    suspended = CompanionAnnouncement(
        40123, "/tmp/x.json", ("/project",), frozenset({40123, 1001}), "`fg` lets it go on"
    )
    (choice,) = [
        choice
        for choice in examined(LOCK, living=(10,), open_ports=(1001,), running=(suspended,)).choices
        if choice.cli == "Claude Code"
    ]
    assert not choice.connects
    assert (choice.reason, choice.advice) == ("the companion on port 1001 is suspended", "`fg` lets it go on")
