import pytest

from isthmus.mcp_host.elicitation.page_address import UrlError, host_of


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://Bank.example/x?y#z", "bank.example"),
        ("https://bank.example:8443/", "bank.example:8443"),
        ("http://bank.example/", "bank.example (not encrypted)"),
        ("http://localhost:1/", "localhost:1"),
        ("http://[::1]:1/", "::1:1"),
        ("https://192.0.2.7/", "192.0.2.7"),
        ("https://a_b-c.example./", "a_b-c.example."),
        ("https://evil.example/#@bank.example", "evil.example"),
        ("https://evil.example?@bank.example", "evil.example"),
        ("https://xn--bnk-6cd.com/", "xn--bnk-6cd.com"),
        ("https://b\u0430nk.com/", "xn--bnk-6cd.com (written b\u0430nk.com)"),
    ],
)
def test_the_host_is_told_as_a_browser_reads_it(url: str, host: str) -> None:
    assert host_of(url) == host


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "data:text/html,x",
        "https://",
        "https:evil.example",
        "https:\\\\evil.example",
        "https://bank.example@evil.example/",
        "https://evil.example\\@bank.example/",
        "https://evil.example\\.bank.example/",
        "https://evil.example%2f.bank.example/",
        "https://evil.example%00.bank.example/",
        "https://bank.example;.evil.example/",
        "https://*.example/",
        "https://0x7f.1/",
        "https://2130706433/",
        "https://127.1/",
        "https://[::1/",
        "https://bank.example:99999/",
        "https://bank.example/\u202egnp.exe",
        "https://bank.example/\x1b[2J",
        "https://bank.example/ x",
        "https://bank.ex\u00adample/",
        "https://bank.example/" + "x" * 5_000,
    ],
)
def test_what_hides_where_it_leads_is_refused(url: str) -> None:
    with pytest.raises(UrlError):
        host_of(url)
