import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.a2a.server.users.auth import LOCAL_USER, Principal, Refusal, RequestGate
from isthmus.a2a.server.users.quota import RequestRate
from isthmus.a2a.server.users.users import Caps, ExpiredToken, UsersError, UserTable
from isthmus.a2a.server.users.users_file import UsersFile
from isthmus.cli.serving.token import expiry
from isthmus.client import UserLimits
from isthmus.journal.port.day_limits import DayLimits
from isthmus.programs.setup.setup import BadInputError

NOW = 1_800_000_000.0


def make(path: Path, name: str) -> str:
    """Add a token for a user to the file, as `isthmus serve token add` does."""

    def change(table: UserTable) -> tuple[UserTable, str]:
        changed, _, token = table.added(name, NOW)
        return changed, token

    return UsersFile(path).change(change)


def test_a_token_is_found_by_itself_alone() -> None:
    table, entry, token = UserTable().added("alice", NOW)
    table, _, other = table.added("bob", NOW)
    assert table.find(token, NOW) == entry
    found = table.find(other, NOW)
    assert not isinstance(found, ExpiredToken)
    assert found is not None
    assert found.name == "bob"
    for wrong in (token[:-1], token + "x", token.upper(), entry.id, entry.digest, "", "isthmus_", token + "\n", "ä"):
        assert table.find(wrong, NOW) is None
    assert table.find(token.replace(entry.id, found.id), NOW) is None


def test_the_table_holds_no_token() -> None:
    table, _, token = UserTable().added("alice", NOW, NOW + 5, Caps(max_open=3))
    data = table.encode()
    secret = token.split("_", 2)[2]
    assert len(secret) > 20
    assert secret.encode() not in data
    assert UserTable.decode(data) == table


def test_a_token_that_expired_is_known_as_such() -> None:
    table, entry, token = UserTable().added("alice", NOW, NOW + 60)
    assert table.find(token, NOW + 59) == entry
    assert table.find(token, NOW + 60) == ExpiredToken(entry)
    assert table.is_valid(entry.id, NOW + 59)
    assert not table.is_valid(entry.id, NOW + 60)
    assert not table.is_valid("00000000", NOW)


def test_the_largest_maximum_of_a_users_valid_tokens_holds_for_what_is_at_work() -> None:
    default = Caps(max_tokens_a_day=10)
    table, _, _ = UserTable().added("alice", NOW, caps=Caps(max_tokens_a_day=30))
    table, _, _ = table.added("alice", NOW, caps=Caps(max_tokens_a_day=20))
    table, _, _ = table.added("alice", NOW, NOW + 5, Caps(max_tokens_a_day=90))
    assert [table.limits_of_day("alice", NOW + seconds, default).tokens for seconds in (0, 5)] == [90, 30]
    assert table.limits_of_day("issuer#sub=bob", NOW, default) == DayLimits(10)
    assert table.limits_of_day("issuer#sub=bob", NOW, Caps()) == DayLimits()
    unlimited, _, _ = table.added("alice", NOW)
    assert unlimited.limits_of_day("alice", NOW, Caps()) == DayLimits()


def test_tokens_are_revoked_by_id_or_all_of_a_user_by_name() -> None:
    table, first, token = UserTable().added("alice", NOW)
    table, _, _ = table.added("alice", NOW)
    table, _, bobs = table.added("bob", NOW)
    without_one, gone = table.revoked(first.id)
    assert gone == (first,)
    assert without_one.find(token, NOW) is None
    assert len(without_one.entries) == 2
    without_alice, gone = table.revoked("alice")
    assert len(gone) == 2
    assert [entry.name for entry in without_alice.entries.values()] == ["bob"]
    assert without_alice.find(bobs, NOW) is not None
    with pytest.raises(UsersError, match=r"neither a token's id nor a user's name\. Users: alice, bob"):
        table.revoked("eve")


@pytest.mark.parametrize("name", ["", " ", "a b", "-a", ".", "a/b", "x" * 65, "ä", "a\n", "a\x00"])
def test_a_name_that_cannot_be_a_users_is_refused(name: str) -> None:
    with pytest.raises(UsersError, match="is not a valid user name"):
        UserTable().added(name, NOW)


@given(
    st.binary(max_size=200)
    | st.sampled_from([b"[]", b"{}", b'{"version":1,"tokens":[{}]}', b'{"version":9,"tokens":[]}'])
)
def test_bytes_that_are_no_table_are_refused(data: bytes) -> None:
    with pytest.raises(UsersError):
        UserTable.decode(data)


def test_own_caps_go_before_the_servers() -> None:
    server = Caps(10, 2, 5, 1000)
    assert Caps(max_running=7).over(server) == Caps(10, 7, 5, 1000)
    assert Caps(3, 4).limits == UserLimits(3, 4)


def test_the_gate_knows_the_local_user_users_and_nobody_else() -> None:
    table, entry, token = UserTable().added("alice", NOW, NOW + 60, Caps(max_open=2))
    gate = RequestGate("very-secret")
    assert gate.identify("Bearer very-secret", table, NOW) == LOCAL_USER
    assert gate.identify(f"Bearer {token}", table, NOW) == Principal("alice", entry.id, Caps(max_open=2))
    late = gate.identify(f"bearer  {token} ", table, NOW + 61)
    assert isinstance(late, Refusal)
    assert late.status == 401
    assert f"the token {entry.id} of alice expired at 2027-01-15T08:01+00:00" in late.message
    assert token not in late.message
    unknown = gate.identify(f"Bearer {token}", UserTable(), NOW)
    assert isinstance(unknown, Refusal)
    assert "not this server's token" in unknown.message


def test_the_file_is_its_owners_alone_and_a_change_is_seen_at_the_next_look(tmp_path: Path) -> None:
    path = tmp_path / "data" / "users.json"
    server = UsersFile(path)
    assert server.table() == UserTable()
    token = make(path, "alice")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert server.table().find(token, NOW) is not None
    UsersFile(path).change(lambda table: table.revoked("alice"))
    assert server.table().find(token, NOW) is None
    path.unlink()
    assert server.table() == UserTable()


def test_a_broken_file_lets_nobody_in_and_is_left_as_it_is(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "users.json"
    server = UsersFile(path)
    token = make(path, "alice")
    assert server.table().find(token, NOW) is not None
    path.write_bytes(b"{half")
    assert server.table() == UserTable()
    assert "no user with a token is let in" in caplog.text
    with pytest.raises(UsersError, match=r"users\.json: it does not contain a table"):
        make(path, "bob")
    assert path.read_bytes() == b"{half"


def test_a_file_that_others_can_read_is_closed_to_them(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "users.json"
    make(path, "alice")
    path.chmod(0o644)
    UsersFile(path).table()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "mode 0644" in caplog.text


def test_programs_that_change_the_file_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "users.json"
    names = [f"user-{number}" for number in range(12)]
    threads = [threading.Thread(target=make, args=(path, name)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(entry.name for entry in UsersFile(path).read().entries.values()) == sorted(names)
    assert not list(tmp_path.glob("*.tmp"))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90d", 90 * 86_400), ("12h", 43_200), ("30m", 1800), ("2w", 14 * 86_400), ("2027-01-16", 57_600)],
)
def test_an_expiry_is_a_time_from_now_or_a_day(text: str, seconds: float) -> None:
    assert expiry(text, NOW) == NOW + seconds
    assert expiry("never", NOW) is None


@pytest.mark.parametrize("text", ["", "d", "90", "90 d", "-1d", "0d", "1999-01-01", "soon", "999999w"])
def test_an_expiry_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(BadInputError, match="--expires"):
        expiry(text, NOW)


def test_a_rate_lets_a_minutes_requests_come_at_once_and_then_evenly() -> None:
    rate = RequestRate()
    assert [rate.take(3, 100.0) for _ in range(3)] == [0, 0, 0]
    assert rate.take(3, 100.0) == 20
    assert rate.take(3, 110.0) == 10
    assert rate.take(3, 120.0) == 0
    assert rate.take(3, 120.0) == 20
    assert [rate.take(3, 10_000.0) for _ in range(4)] == [0, 0, 0, 20]


def test_limits_of_a_token_come_before_those_of_the_server() -> None:
    server = Caps(1, 2, 3, 4000, 5, 6)
    assert Caps().over(server) == server
    assert Caps(max_open=9, max_tokens_a_day=7, max_usd_a_day=2.5).over(server) == Caps(1, 2, 9, 4000, 5, 7, 2.5)


def test_a_look_while_another_thread_reads_a_changed_file_finds_no_former_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "users.json"
    UsersFile(path).change(lambda table: table.with_device("", "Phone", 0.0, 5000.0)[:2])
    file, reads, read = UsersFile(path), threading.Event(), UsersFile.read
    goes_on = threading.Event()

    def slow(self: UsersFile) -> UserTable:
        if not reads.is_set():
            reads.set()
            assert goes_on.wait(10)
        return read(self)

    monkeypatch.setattr(UsersFile, "read", slow)
    first = threading.Thread(target=file.table)
    first.start()
    assert reads.wait(10)
    try:
        assert len(file.table().entries) == 1
    finally:
        goes_on.set()
        first.join()
