import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.web.pairing.pairing import (
    ALPHABET,
    LINK_SECONDS,
    MAXIMUM_CODES,
    MAXIMUM_GUESSES,
    MAXIMUM_WRONG,
    SHORT_LENGTH,
    SHORT_SECONDS,
    WRONG_SECONDS,
    PairingCodes,
    TooManyCodesError,
    WrongCodeError,
)


def test_a_code_lets_its_user_in_once() -> None:
    codes = PairingCodes()
    code = codes.short("alice", 100)
    assert codes.use(code.text, 101).user == "alice"
    with pytest.raises(WrongCodeError):
        codes.use(code.text, 102)


def test_a_short_code_is_read_as_people_type_it() -> None:
    codes = PairingCodes()
    text = codes.short("", 0).text
    assert len(text) == SHORT_LENGTH
    assert set(text) <= set(ALPHABET)
    assert not set("0O1I") & set(ALPHABET)
    assert codes.use(f" {text[:4].lower()}-{text[4:]} ", 1).user == ""


def test_codes_end_after_their_time() -> None:
    codes = PairingCodes()
    short, link = codes.short("", 0), codes.for_link("", 0)
    with pytest.raises(WrongCodeError):
        codes.use(short.text, SHORT_SECONDS)
    assert codes.use(link.text, LINK_SECONDS - 1).user == ""


def test_a_link_is_not_read_in_another_spelling() -> None:
    codes = PairingCodes()
    text = codes.for_link("", 0).text
    with pytest.raises(WrongCodeError):
        codes.use(text.swapcase(), 1)


def test_whoever_sends_wrong_codes_is_told_to_wait_and_keeps_nobody_out() -> None:
    codes = PairingCodes()
    short, link = codes.short("", 0), codes.for_link("", 0)
    for _ in range(MAXIMUM_WRONG):
        with pytest.raises(WrongCodeError):
            codes.use("AAAAAAAA", 1)
    for wrong in ("AAAAAAAA", link.text.upper()):
        with pytest.raises(TooManyCodesError) as refused:
            codes.use(wrong, 2)
        assert 0 < refused.value.seconds <= WRONG_SECONDS
    assert codes.use(short.text, 3).user == ""
    assert codes.use(link.text, 3).user == ""


def test_a_short_code_is_void_after_too_many_guesses_and_a_new_one_is_not() -> None:
    codes = PairingCodes()
    short, link = codes.short("", 0), codes.for_link("", 0)
    for _ in range(MAXIMUM_GUESSES):
        with pytest.raises((WrongCodeError, TooManyCodesError)):
            codes.use("AAAAAAAA", 1)
    later = codes.short("", 2)
    with pytest.raises(TooManyCodesError):
        codes.use(short.text, 2)
    assert codes.use(later.text, 2).user == ""
    assert codes.use(link.text, 2).user == ""


@given(st.lists(st.sampled_from(["make", "use", "wrong", "wait"]), max_size=60))
def test_no_code_is_ever_worth_two_entries(steps: list[str]) -> None:
    codes, now, made, entries = PairingCodes(), 0.0, 0, 0
    last = "AAAAAAAA"
    for step in steps:
        match step:
            case "make":
                last = codes.short("u", now).text
                made += 1
            case "wait":
                now += 25
            case _:
                try:
                    codes.use(last if step == "use" else "AAAAAAAA", now)
                    entries += 1
                except (WrongCodeError, TooManyCodesError):
                    pass
    assert entries <= made


def test_the_oldest_codes_are_forgotten() -> None:
    codes = PairingCodes()
    first = codes.short("", 0)
    for _ in range(MAXIMUM_CODES):
        codes.short("", 0)
    with pytest.raises(WrongCodeError):
        codes.use(first.text, 1)
