import pytest

from isthmus.web.pairing.links import entry_link, is_reachable, shown_url


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://agent.example.org/", True),
        ("http://192.168.1.4:80/", True),
        ("http://127.0.0.1:80/", False),
        ("http://127.9.9.9:80/", False),
        ("http://[::1]:80/", False),
        ("http://localhost:80/", False),
        ("http://x.localhost/", False),
        ("http://0.0.0.0:80/", False),
        ("http://[::]:80/", False),
        ("", False),
    ],
)
def test_an_address_of_this_machine_alone_is_not_for_other_devices(url: str, expected: bool) -> None:
    assert is_reachable(url) == expected


def test_the_address_for_all_is_shown_as_one_that_can_be_opened() -> None:
    assert shown_url("https://agent.example.org:8443/") == "https://agent.example.org:8443/"
    assert shown_url("http://192.168.1.4:80/") == "http://192.168.1.4:80/"
    shown = shown_url("http://0.0.0.0:8080/")
    assert shown.endswith(":8080/")
    assert shown.startswith("http://")


def test_a_link_that_is_too_long_for_a_code_has_none() -> None:
    assert entry_link("https://host.test/", "ABCD").qr is not None
    long = entry_link(f"https://host.test/{'a' * 300}/", "ABCD")
    assert long.url.endswith("/ui/#code=ABCD")
    assert long.qr is None
