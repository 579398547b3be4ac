import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from isthmus.web.push.push_message import (
    MAXIMUM_TEXT,
    PushKeyError,
    ServerKey,
    check_keys,
    encrypt,
    from_base64,
    to_base64,
)
from support.push_reader import BrowserKeys, claims_of, encoded

# The example of RFC 8291, section 5 and appendix A.
TEXT = b"When I grow up, I want to be a watermelon"
SENDER = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
RECEIVER = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
AUTH = "BTBZMqHH6r4Tts7J_aSIgg"
SALT = "DGv6ra1nlYgDCS1FRnbzlw"
BODY = (
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl"
    "7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
)


def test_the_example_of_the_standard_is_encrypted_as_there() -> None:
    body = encrypt(TEXT, RECEIVER, AUTH, salt=from_base64(SALT), key=SENDER)
    assert to_base64(body) == BODY


def test_each_message_has_a_salt_and_a_key_of_its_own_and_can_be_read() -> None:
    keys = BrowserKeys()
    there = keys.subscription("")
    one, other = (encrypt(TEXT, there["p256dh"], there["auth"]) for _ in range(2))
    assert keys.read(one) == keys.read(other) == TEXT
    assert one[:16] != other[:16]
    assert one[21:86] != other[21:86]


def test_a_signature_is_for_one_service_and_ends() -> None:
    key = ServerKey.new()
    header = key.authorization("https://push.test", "https://me.test/", 1000.5)
    claims = claims_of({"authorization": header}, key.public)
    assert claims == {"aud": "https://push.test", "exp": 1000 + 12 * 3600, "sub": "https://me.test/"}
    assert ServerKey(key.private).public == key.public


@pytest.mark.parametrize(
    ("p256dh", "auth"),
    [
        ("", AUTH),
        ("AAAA", AUTH),
        (RECEIVER[:-4] + "AAAA", AUTH),  # not on the curve
        ("é", AUTH),
        (RECEIVER, "AAAA"),
        (RECEIVER, "!" * 22),
        (encoded(b"\x04" + b"\xff" * 64), AUTH),
        (encoded(b"\x00"), AUTH),
    ],
)
def test_keys_that_are_none_are_refused(p256dh: str, auth: str) -> None:
    with pytest.raises(PushKeyError):
        check_keys(p256dh, auth)


def test_a_text_that_is_too_long_is_refused() -> None:
    with pytest.raises(PushKeyError, match="at most"):
        encrypt(b"x" * (MAXIMUM_TEXT + 1), RECEIVER, AUTH)


def test_a_private_key_outside_the_curve_is_refused() -> None:
    order = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
    for number in (0, order):
        with pytest.raises(PushKeyError):
            _ = ServerKey(encoded(number.to_bytes(32, "big"))).public
    assert ec.SECP256R1().key_size == 256
