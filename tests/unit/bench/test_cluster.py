"""The parts of the benchmark of clusters: quotas, ratios that are judged, the wire, and the queue."""

import json
from functools import partial
from pathlib import Path

import pytest
from bench.cluster.fair_queue import OTHERS, TAKEN, add_tasks, take_times, take_turns
from bench.cluster.following import task_id
from bench.cluster.pressure import tasks_within
from bench.cluster.scale import reason_not_to_judge
from bench.figures import percentile
from bench.load import Answer
from bench.quotas import PERIOD_MICROSECONDS, QuotaUnavailable, quota

from isthmus.journal.sqlite.journal import SqliteJournal


def group_in(cgroups: Path) -> Path:
    (found,) = cgroups.glob("isthmus-bench-*")
    return found


def test_a_quota_of_control_groups_version_1_is_time_in_a_period(tmp_path: Path) -> None:
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cgroup.procs").touch()
    with quota(0.2, tmp_path) as limit:
        folder = group_in(tmp_path / "cpu")
        limit.add(17)
        assert (folder / "cpu.cfs_period_us").read_text("ascii").strip() == str(PERIOD_MICROSECONDS)
        assert (folder / "cpu.cfs_quota_us").read_text("ascii").strip() == str(PERIOD_MICROSECONDS // 5)
        assert (folder / "cgroup.procs").read_text("ascii").strip() == "17"
        for file in folder.iterdir():  # a real group has no files of its own
            file.unlink()
    assert not folder.exists()


def test_a_quota_of_control_groups_version_2_needs_their_controller(tmp_path: Path) -> None:
    (tmp_path / "cgroup.subtree_control").write_text("memory", "ascii")
    with quota(0.5, tmp_path):
        folder = group_in(tmp_path)
        assert (folder / "cpu.max").read_text("ascii") == f"{PERIOD_MICROSECONDS // 2} {PERIOD_MICROSECONDS}\n"
        (folder / "cpu.max").unlink()
    assert "cpu" in (tmp_path / "cgroup.subtree_control").read_text("ascii")
    assert not folder.exists()


def test_without_control_groups_the_reason_is_said(tmp_path: Path) -> None:
    with pytest.raises(QuotaUnavailable, match="No such file or directory"), quota(0.5, tmp_path / "none"):
        pass


def test_a_ratio_is_judged_only_beside_a_server_that_used_up_its_quota() -> None:
    assert reason_not_to_judge("", 0.97, 3) == ""
    assert reason_not_to_judge("", 0.97, 1) == "none: of fewer than 3 rounds"
    assert reason_not_to_judge("", 0.5, 3) == "none: 1 server used 50% of its quota"
    assert reason_not_to_judge("no cgroups", 0.97, 3) == "none: no CPU quotas here (no cgroups)"


@pytest.mark.parametrize("result", [{"kind": "task", "id": "t1"}, {"kind": "status-update", "taskId": "t1"}])
def test_the_task_of_a_stream_is_in_its_first_event(result: dict[str, str]) -> None:
    event = f"data: {json.dumps({'jsonrpc': '2.0', 'id': 1, 'result': result})}\r\n\r\n"
    assert task_id(Answer(200, b"", event.encode(), 1, 0.0)) == "t1"


def test_a_percentile_is_one_of_the_values() -> None:
    assert [percentile([3.0, 1.0, 2.0, 4.0], percent) for percent in (0, 50, 95)] == [1.0, 3.0, 4.0]


@pytest.mark.anyio
async def test_each_take_of_the_queue_is_timed(tmp_path: Path) -> None:
    journal = partial(SqliteJournal.open, tmp_path / "journal.sqlite")
    await add_tasks(journal, 3 * TAKEN)
    assert len(await take_times(journal, 3)) == 3
    with pytest.raises(RuntimeError, match="expected 4 tasks, took 0"):
        await take_times(journal, 1)


@pytest.mark.anyio
async def test_users_take_turns_however_many_tasks_one_has_queued(tmp_path: Path) -> None:
    turns = await take_turns(partial(SqliteJournal.open, tmp_path / "journal.sqlite"), tmp_path, 2 * (OTHERS + 1))
    assert 0 < turns.share < 0.3
    assert turns.overtaken <= OTHERS + 1


def test_tasks_across_the_border_of_a_measurement_count_by_their_part_in_it() -> None:
    batches = [(float(end - 2), float(end)) for end in (2, 4, 6, 8) for _ in range(6)]
    counted = {begin: tasks_within(batches, begin, begin + 4) for begin in (0.0, 0.5, 1.0, 1.9, 2.0, 3.9)}
    assert counted == {begin: pytest.approx(12.0) for begin in counted}
    assert tasks_within([(0.0, 8.0)], 2.0, 4.0) == 0.25
    assert tasks_within([(0.0, 1.0), (5.0, 6.0)], 1.0, 5.0) == 0.0
