import pytest

from isthmus.text.units import AmountError, parse_age, parse_size, show_count, show_size


@pytest.mark.parametrize(
    ("text", "size"),
    [("17", 17), ("500MB", 500_000_000), ("1GiB", 1024**3), ("1.5 kib", 1536), (" 2 kB ", 2000), ("0", 0)],
)
def test_a_size_is_read_in_powers_of_ten_or_two(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "MB", "-1", "5 bananas", "1e9"])
def test_what_is_no_size_is_named_with_what_was_expected(text: str) -> None:
    with pytest.raises(AmountError, match=r"not a size; expected a number with B, KB.*500MB"):
        parse_size(text)


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("2m", 120), ("12h", 43_200), ("30d", 2_592_000)])
def test_an_age_is_read_in_seconds(text: str, seconds: float) -> None:
    assert parse_age(text) == seconds


@pytest.mark.parametrize("text", ["", "30", "d", "-1d", "1y"])
def test_what_is_no_age_is_named_with_what_was_expected(text: str) -> None:
    with pytest.raises(AmountError, match="not an age; expected a number with s, m, h, d or w"):
        parse_age(text)


def test_a_size_is_shown_in_its_unit() -> None:
    assert [show_size(size) for size in (0, 1023, 1536, 5 * 1024**2, 3 * 1024**3)] == [
        "0 B",
        "1023 B",
        "1.5 KiB",
        "5.0 MiB",
        "3.0 GiB",
    ]


def test_counts_are_shown_with_their_noun() -> None:
    assert [show_count(number, "file") for number in (0, 1, 2, 1200)] == ["0 files", "1 file", "2 files", "1,200 files"]


@pytest.mark.parametrize("text", ["9" * 400, "9" * 400 + "MB", "1." + "9" * 400])
def test_a_number_with_too_many_digits_is_no_amount(text: str) -> None:
    with pytest.raises(AmountError, match="is not a size"):
        parse_size(text)
    with pytest.raises(AmountError, match="is not an age"):
        parse_age(f"{text}d")
