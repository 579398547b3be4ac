"""Connections that are closed for others: limits in total and per address, the oldest first."""

from hypothesis import given
from hypothesis import strategies as st

from isthmus.listeners.oldest_first import OldestFirst, address_key

_MOVES = st.lists(
    st.tuples(st.sampled_from(("add", "add", "add", "discard")), st.sampled_from("abcde"), st.integers(0, 30)),
    max_size=120,
)


@given(_MOVES, st.integers(1, 8), st.integers(1, 8))
def test_the_bounds_hold_and_nobody_goes_without_need(
    moves: list[tuple[str, str, int]], maximum: int, per_address: int
) -> None:
    per_address = min(maximum, per_address)
    members = OldestFirst[int](maximum, per_address)
    model: list[tuple[int, str]] = []
    for number, (move, address, chosen) in enumerate(moves):
        if move == "discard":
            member = model[chosen % len(model)][0] if model else -1
            assert members.discard(member) == bool(model)
            model = [entry for entry in model if entry[0] != member]
            continue
        of_address = [member for member, of in model if of == address]
        is_full = len(model) == maximum or len(of_address) == per_address
        gone = members.add(number, address)
        assert (gone is not None) == is_full
        model.append((number, address))
        if gone is not None:
            its_address = next(of for member, of in model if member == gone)
            siblings = [member for member, of in model if of == its_address]
            assert gone == siblings[0] != number
            if len(of_address) == per_address:
                assert its_address == address
            else:
                counts = [sum(of == other for _, of in model[:-1]) for other in "abcde"]
                assert sum(of == its_address for _, of in model[:-1]) == max(counts)
            model = [entry for entry in model if entry[0] != gone]
        assert members.members() == tuple(member for member, _ in model)
        assert len(members) <= maximum
        assert all(members.count(of) <= per_address for of in "abcde")


def test_one_address_does_not_displace_another() -> None:
    members = OldestFirst[str](4, 3)
    members.add("user", "user")
    for number in range(1000):
        members.add(f"stranger {number}", "stranger")
    assert "user" in members


def test_an_ipv6_network_counts_as_one_address() -> None:
    assert address_key("2001:db8::1") == address_key("2001:db8:0:0:ffff::2%eth0") == "2001:db8::/64"
    assert address_key("2001:db8:0:1::1") != address_key("2001:db8::1")
    assert address_key("::ffff:192.0.2.1") == "192.0.2.1"
    assert address_key("127.0.0.2") == "127.0.0.2"
    assert address_key("") == ""
