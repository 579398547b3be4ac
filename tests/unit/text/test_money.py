"""Amounts of money as users read and write them."""

import pytest

from isthmus.text.money import PICODOLLARS, in_dollars, parse_dollars, show_cost, show_dollars
from isthmus.text.units import AmountError


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (0, "$0.00"),
        (1, "<$0.0001"),
        (99_999_999, "<$0.0001"),
        (100_000_000, "$0.0001"),
        (12_345_000_000, "$0.0123"),
        (12_350_000_000, "$0.0124"),
        (500_000_000_000, "$0.50"),
        (PICODOLLARS - 1, "$1.00"),
        (PICODOLLARS, "$1.00"),
        (12_345 * PICODOLLARS // 10, "$1,234.50"),
    ],
)
def test_small_amounts_are_shown_to_four_places_and_others_to_two(amount: int, shown: str) -> None:
    assert show_dollars(amount) == shown


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("5", 5 * PICODOLLARS),
        ("0.5", PICODOLLARS // 2),
        ("$2.50", 5 * PICODOLLARS // 2),
        ("0", 0),
        ("0.000000000001", 1),
    ],
)
def test_an_amount_is_read_exactly(text: str, amount: int) -> None:
    assert parse_dollars(text) == amount


@pytest.mark.parametrize("text", ["", "-1", "1e3", "five", "1,5", "NaN", "inf", "1.0000000000001", "9" * 13, "€5", "٣"])
def test_what_is_no_amount_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(AmountError, match=r"expected US dollars, e\.g\. 2\.50"):
        parse_dollars(text)


def test_an_amount_is_a_number_of_dollars_on_the_wire() -> None:
    assert in_dollars(12_300_000_000) == 0.0123


def test_a_cost_says_which_part_of_it_is_not_known() -> None:
    assert show_cost(12_300_000_000, ()) == "$0.0123"
    assert show_cost(0, ("llama",)) == "cost unknown (no price for llama)"
    assert show_cost(12_300_000_000, ("llama", "qwen")) == "$0.0123 and more (no price for llama, qwen)"
    many = show_cost(0, ("a", "b", "c", "d", "e"))
    assert many == "cost unknown (no price for a, b, c and 2 more)"
