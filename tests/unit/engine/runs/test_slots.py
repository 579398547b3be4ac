from isthmus.engine.runs.slots import UNLIMITED, Slots


def test_a_task_holds_one_slot_however_often_it_is_claimed() -> None:
    slots = Slots(2)
    slots.hold("t1")
    slots.hold("t1")
    assert (slots.free, slots.held) == (1, 1)
    slots.release("t1")
    slots.release("t1")
    assert (slots.free, slots.held) == (2, 0)


def test_reserved_slots_are_not_free() -> None:
    slots = Slots(3)
    with slots.reserved(2):
        assert slots.free == 1
    assert slots.free == 3


def test_more_tasks_than_slots_leave_none_free() -> None:
    slots = Slots(1)
    slots.hold("t1")
    slots.hold("a subagent's answer")
    assert slots.free == 0


def test_without_a_limit_there_are_always_free_slots() -> None:
    slots = Slots(None)
    for number in range(1000):
        slots.hold(str(number))
    assert slots.free == UNLIMITED
