"""A server searches its objects for garbage seldom, and as before afterwards."""

import gc

from isthmus.programs.process.garbage import YOUNG_OBJECTS, searched_seldom


def test_objects_are_searched_seldom_until_the_end() -> None:
    before = gc.get_threshold()
    with searched_seldom():
        assert gc.get_threshold() == (YOUNG_OBJECTS, *before[1:])
    assert gc.get_threshold() == before
