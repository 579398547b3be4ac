import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.a2a.push.delivery import PushLimits
from isthmus.a2a.push.sender import PushSender
from isthmus.a2a.push.targets import PushOrigin, PushRefused, PushRule, PushRuleError, origin_of
from isthmus.client import PushTarget

pytestmark = pytest.mark.anyio

PUBLIC = ("93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946")
NOT_PUBLIC = [
    ("127.0.0.1", "loopback"),
    ("127.8.9.1", "loopback"),
    ("::1", "loopback"),
    ("::ffff:127.0.0.1", "loopback"),
    ("::127.0.0.1", "loopback"),
    ("2002:7f00:0001::", "loopback"),
    ("64:ff9b::7f00:1", "loopback"),
    ("0.0.0.0", "unspecified"),  # noqa: S104 - compared, not bound
    ("::", "unspecified"),
    ("10.0.0.1", "private"),
    ("172.16.5.4", "private"),
    ("192.168.1.1", "private"),
    ("::ffff:10.0.0.1", "private"),
    ("64:ff9b::a00:1", "private"),
    ("fd00:ec2::254", "private"),
    ("169.254.169.254", "link-local"),
    ("::ffff:169.254.169.254", "link-local"),
    ("fe80::1", "link-local"),
    ("fe80::1%eth0", "link-local"),
    ("100.100.100.200", "reserved"),
    ("168.63.129.16", "reserved"),
    ("224.0.0.1", "multicast"),
    ("ff02::1", "multicast"),
    ("fec0::1", "reserved"),
    ("64:ff9b:1::a00:1", "address"),  # private or reserved: versions of Python differ
    ("5f00::1", "reserved"),
    ("255.255.255.255", "private"),
]


@pytest.mark.parametrize(("address", "kind"), NOT_PUBLIC)
def test_an_address_that_is_not_public_is_refused_by_its_kind(address: str, kind: str) -> None:
    found = PushRule().refusal("name.example", address)
    assert found is not None
    assert kind in found


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_allowed(address: str) -> None:
    assert PushRule().refusal("name.example", address) is None


def test_an_allowed_name_may_be_anywhere_and_an_allowed_network_have_any_name() -> None:
    rule = PushRule.of(["Hooks.Internal.", "10.1.0.0/16", "192.168.7.7", "[fd00::1]"])
    assert rule.refusal("hooks.internal", "10.9.9.9") is None
    assert rule.refusal("HOOKS.internal", "127.0.0.1") is None
    assert rule.refusal("other.internal", "10.9.9.9") == "a private address"
    assert rule.refusal("x", "10.1.2.3") is None
    assert rule.refusal("x", "::ffff:10.1.2.3") is None
    assert rule.refusal("x", "192.168.7.7") is None
    assert rule.refusal("x", "fd00::1") is None
    assert rule.refusal("x", "192.168.7.8") is not None


def test_one_refused_address_among_several_is_enough_and_the_address_is_not_told() -> None:
    with pytest.raises(PushRefused, match="private address") as refused:
        PushRule().require(PushOrigin("https", "sly.example", 443), [PUBLIC[0], "10.0.0.77"])
    assert "10.0.0.77" not in str(refused.value)
    assert "--allow-push-to" in str(refused.value)


@pytest.mark.parametrize("entry", ["", "10.0.0.0/99", "300.1.1.1", "http://x", "a b", "ex*mple", "-x", "host:80"])
def test_what_is_no_place_is_refused_in_the_list_of_allowed_ones(entry: str) -> None:
    with pytest.raises(PushRuleError, match="is not a target for push notifications"):
        PushRule.of([entry])


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("https://Hooks.Example/path?q=1", "https://hooks.example:443"),
        ("http://hooks.example:8080", "http://hooks.example:8080"),
        ("https://hooks.example./x", "https://hooks.example:443"),
        ("http://[::1]:99/x", "http://[::1]:99"),
    ],
)
def test_a_url_leads_to_a_place(url: str, place: str) -> None:
    assert str(origin_of(PushTarget(url))) == place


@pytest.mark.parametrize(
    ("target", "why"),
    [
        (PushTarget(""), "begin with https://"),
        (PushTarget("ftp://example.org/"), "begin with https://"),
        (PushTarget("file:///etc/passwd"), "begin with https://"),
        (PushTarget("gopher://example.org/"), "begin with https://"),
        (PushTarget("https:///path"), "not name a host"),
        (PushTarget("https://./path"), "not name a host"),
        (PushTarget("https://user:secret@example.org/"), "contains a user"),
        (PushTarget("https://example.org\\@10.0.0.1/"), "percent-encoded"),
        (PushTarget("https://exa mple.org/"), "percent-encoded"),
        (PushTarget("https://example.org/\r\nX: y"), "percent-encoded"),
        (PushTarget("https://bücher.example/"), "percent-encoded"),
        (PushTarget("https://example.org:99999/"), "cannot be read"),
        (PushTarget("https://example.org:0/"), "port 0"),
        (PushTarget("https://[::1/"), "cannot be read"),
        (PushTarget("https://example.org/" + "x" * 2000), "longer than"),
        (PushTarget("https://example.org/", token="a\r\nb"), "the token"),
        (PushTarget("https://example.org/", token="ä"), "the token"),
        (PushTarget("https://example.org/", scheme="Bearer", credentials="a\nb"), "the credentials"),
        (PushTarget("https://example.org/", scheme="Bea rer", credentials="a"), "scheme"),
        (PushTarget("https://example.org/", credentials="a"), "without an authentication scheme"),
        (PushTarget("https://example.org/", id="a\r\nb"), "the id"),
        (PushTarget("https://example.org/", id="x" * 201), "the id"),
    ],
)
async def test_an_unusable_target_is_refused_with_the_reason_and_without_its_secrets(
    target: PushTarget, why: str
) -> None:
    with pytest.raises(PushRefused) as refused:
        await PushSender(resolve=no_name).check(target)
    assert why in str(refused.value)
    assert "secret" not in str(refused.value)


async def no_name(host: str, port: int) -> list[str]:
    raise AssertionError("nothing is resolved for a URL that cannot be used")


@pytest.mark.parametrize(
    "host",
    ["localhost", "127.1", "2130706433", "0x7f000001", "[::ffff:7f00:1]", "0", "[::]", "127.0.0.1.", "017700000001"],
)
async def test_every_spelling_of_this_machine_is_refused(host: str) -> None:
    with pytest.raises(PushRefused, match=r"loopback|unspecified|cannot be resolved"):
        await PushSender().check(PushTarget(f"http://{host}:80/"))


async def test_a_name_without_an_address_is_refused() -> None:
    with pytest.raises(PushRefused, match="cannot be resolved"):
        await PushSender().check(PushTarget("https://no.such.host.invalid/"))


@given(st.ip_addresses(v=4))
def test_what_is_not_global_is_never_allowed(address: object) -> None:
    text = str(address)
    if not getattr(address, "is_global", False):
        assert PushRule().refusal("x", text) is not None
        assert PushRule().refusal("x", f"::ffff:{text}") is not None


def test_waits_grow_to_a_bound_and_end() -> None:
    limits = PushLimits()
    waits = [limits.wait_after(attempts) for attempts in range(1, limits.attempts + 1)]
    assert waits[:4] == [1, 2, 4, 8]
    assert waits[-2] == 300
    assert waits[-1] is None
    assert limits.wait_after(1, 120) == 120
    assert limits.wait_after(3, None, 0.5) == 2
