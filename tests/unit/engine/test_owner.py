import subprocess
import sys

import pytest

from isthmus.journal.port.lease_owner import MACHINE, is_gone, new_owner
from support.waiting import eventually


def named(pid: int, start: str | None = None) -> str:
    name, host, _, own_start = new_owner().split(":")
    return f"{name}:{host}:{pid}:{start or own_start}"


def test_a_process_that_lives_is_not_gone() -> None:
    assert not is_gone(new_owner())


def test_a_process_that_has_ended_is_gone_also_before_its_parent_looks() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    eventually(lambda: is_gone(named(process.pid)))
    process.wait()
    assert is_gone(named(process.pid))


def test_another_process_with_the_number_of_an_ended_one_is_not_it() -> None:
    assert is_gone(named(int(new_owner().split(":")[2]), "1"))


def test_of_another_machine_nothing_is_known() -> None:
    assert not is_gone("0:another-machine:999999999:1")


def test_a_name_of_another_form_is_not_gone() -> None:
    host = new_owner().split(":")[1]
    assert not any(map(is_gone, ("", "someone", f"x:{host}:y:1", f"x:{host}:1:1:1")))


def test_processes_of_machines_with_other_names_know_nothing_of_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = named(int(new_owner().split(":")[2]), "1")
    monkeypatch.setenv(MACHINE, "b:1")
    assert not is_gone(ended)
    assert is_gone(named(int(new_owner().split(":")[2]), "1"))
