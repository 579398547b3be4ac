import io
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from isthmus.client import PromptMessage, TaskNotFound
from isthmus.events import TaskState, TextContent
from isthmus.fronts.conversations import Conversation, find_session, list_sessions
from isthmus.journal.port.lease_owner import new_owner
from isthmus.journal.port.task_rows import TaskRow
from isthmus.terminal.interactive.past_sessions import PastSessions
from isthmus.terminal.interactive.session_list import session_lines
from isthmus.terminal.prompt.menu_prompts import menu_rows
from isthmus.terminal.screen.render import TaskRenderer
from isthmus.terminal.screen.screen import Screen
from support.front_program import edit_call
from support.memory_agent import Ask, MemoryAgent, Step

pytestmark = pytest.mark.anyio


def ticking() -> Callable[[], float]:
    now = [1000.0]

    def clock() -> float:
        now[0] += 1
        return now[0]

    return clock


async def say(agent: MemoryAgent, text: str, workspace: str = "/w", context_id: str | None = None) -> str:
    message = PromptMessage(text, context_id=context_id, settings={"workspace_path": workspace})
    turn = await agent.prompt(message)
    async for _ in turn.deliveries:
        pass
    return turn.context_id


def agent_with_questions() -> MemoryAgent:
    def script(message: PromptMessage) -> Sequence[Step]:
        return (Ask((edit_call(),)),) if "edit" in message.text else (TextContent("t", "ok"),)

    return MemoryAgent(script, clock=ticking())


async def test_a_session_is_the_tasks_of_one_context_and_the_last_changed_comes_first() -> None:
    agent = agent_with_questions()
    first = await say(agent, "first\nsession")
    second = await say(agent, "second session")
    await say(agent, "first again", context_id=first)
    sessions = await list_sessions(agent)
    assert [session.context_id for session in sessions] == [first, second]
    assert sessions[0].title == "first session"
    assert len(sessions[0].tasks) == 2
    assert sessions[0].unfinished == ()


async def test_a_session_with_an_open_question_says_so() -> None:
    agent = agent_with_questions()
    context = await say(agent, "edit")
    await say(agent, "something else", context_id=context)
    session = (await list_sessions(agent))[0]
    assert session.state is TaskState.INPUT_REQUIRED
    assert [task.title for task in session.unfinished] == ["edit"]


async def test_sessions_of_other_folders_are_left_out_when_a_folder_is_named() -> None:
    agent = agent_with_questions()
    here = await say(agent, "here", "/here")
    there = await say(agent, "there", "/there")
    assert [session.context_id for session in await list_sessions(agent, "/here")] == [here]
    assert (await find_session(agent, "latest", "/here")).context_id == here
    assert (await find_session(agent, "latest")).context_id == there
    assert (await find_session(agent, there, "/here")).context_id == there


async def test_a_session_is_found_by_the_beginning_of_its_id_or_of_a_tasks_id() -> None:
    agent = agent_with_questions()
    context = await say(agent, "hello")
    task_id = (await agent.tasks())[0].task_id
    for name in (context, context[:8], context[:4], task_id, task_id[:8]):
        assert (await find_session(agent, name)).context_id == context
    for name in (context[:3], "", "no such"):
        with pytest.raises(TaskNotFound, match="--list-sessions"):
            await find_session(agent, name)


async def test_a_beginning_that_fits_several_sessions_is_refused_naming_them() -> None:
    agent = agent_with_questions()
    for name in ("abcd-1", "abcd-2"):
        await say(agent, "hello", context_id=name)
    with pytest.raises(TaskNotFound, match=r"2 sessions \(abcd-2, abcd-1\)"):
        await find_session(agent, "abcd")


async def test_without_a_session_there_is_nothing_to_resume() -> None:
    with pytest.raises(TaskNotFound, match="no session in /w"):
        await find_session(agent_with_questions(), "latest", "/w")


async def test_the_table_is_aligned_and_fits_the_width() -> None:
    agent = agent_with_questions()
    await say(agent, "edit the file that is open in the editor")
    await say(agent, "hello \x1b[31m")
    sessions = await list_sessions(agent)
    lines = session_lines(sessions, 1000 + 3700, 60)
    assert [line.split()[4] for line in lines] == ["completed", "input-required"]
    assert lines[0].index("hello") == lines[1].index("edit")
    assert all(len(line) <= 60 for line in lines)
    assert "\x1b" not in "".join(lines)
    assert lines[1].endswith("…")


@pytest.mark.parametrize("columns", [50, 80, 120])
async def test_sessions_to_choose_from_have_a_row_each(columns: int) -> None:
    agent = agent_with_questions()
    for number in range(12):
        await say(agent, f"{number} edit the file that is open in the editor, and then all the others that are like it")
    screen = Screen(io.StringIO(), is_terminal=True, width=columns)
    lines, context_ids = await PastSessions(agent, screen, TaskRenderer(screen), None).choices()
    assert len(menu_rows(lines, columns)) == len(lines) == len(context_ids) == 12


@pytest.mark.parametrize(("age", "shown"), [(5, "5 s ago"), (150, "2 min ago"), (7300, "2 h ago"), (200000, "2 d ago")])
async def test_ages_are_rough(age: float, shown: str) -> None:
    agent = agent_with_questions()
    await say(agent, "hello")
    session: Conversation = (await list_sessions(agent))[0]
    assert shown in session_lines([session], session.updated_at + age, 80)[0]


async def test_ids_are_as_long_as_it_takes_to_tell_them_apart() -> None:
    agent = agent_with_questions()
    for name in ("abcdefgh-1", "abcdefgh-2", "other-session"):
        await say(agent, "hello", context_id=name)
    shown = [line.split()[0] for line in session_lines(await list_sessions(agent), 2000, 80)]
    assert shown == ["other-se", "abcdefgh-2", "abcdefgh-1"]


async def test_a_session_whose_process_has_ended_in_the_middle_is_said_to_be_interrupted() -> None:
    agent = agent_with_questions()
    await say(agent, "hello")
    (session,) = await list_sessions(agent)
    (task,) = session.tasks
    working = replace(task, state=TaskState.WORKING)
    for is_interrupted, shown in ((True, "interrupted"), (False, "working")):
        left = Conversation(session.context_id, (replace(working, is_interrupted=is_interrupted),))
        assert session_lines([left], task.updated_at, 80)[0].split()[4] == shown


def test_work_of_a_process_that_has_ended_is_interrupted_and_no_other_is() -> None:
    gone, here = f"{new_owner().rpartition(':')[0]}:1", new_owner()
    row = TaskRow("t", "c", "/w", "hello", TaskState.WORKING, 1, here, 1, 0, 0, 0)
    assert not row.is_interrupted
    assert replace(row, owner=gone).is_interrupted
    assert replace(row, owner=None).is_interrupted
    assert not replace(row, owner=None, is_queued=True).is_interrupted
    assert not replace(row, owner="name:another-machine/1/2:7:1").is_interrupted
    assert not replace(row, owner=gone, state=TaskState.INPUT_REQUIRED).is_interrupted
