"""The waits of a request: for a network that is away, for a server that asks for them, and over a computer's sleep."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from isthmus.models.endpoint.patience import BACK, PROBE_SECONDS, SLICE_SECONDS, RequestWaits, WaitClock
from isthmus.models.endpoint.retry import PATIENT, RetryPolicy
from isthmus.models.port.base import ModelError, ModelErrorKind, Retrying
from support.fake_clock import FakeClock

pytestmark = pytest.mark.anyio

GONE = ModelError(ModelErrorKind.UNREACHABLE, "the server cannot be reached")
CUT = ModelError(ModelErrorKind.INTERRUPTED, "the answer broke off")


@dataclass
class Network:
    """A network that is away at first, and comes back after ``away`` seconds."""

    away: float
    clock: FakeClock = field(default_factory=FakeClock)
    is_there: bool = False
    probes: int = 0

    def __post_init__(self) -> None:
        self.is_there = self.away <= 0
        self.clock.at(self.away, self.come_back)
        self.waits = RequestWaits(
            WaitClock(self.clock.sleep, lambda: 0.5, self.clock.now, self.clock.monotonic), self.is_reachable
        )

    def come_back(self) -> None:
        self.is_there = True

    async def is_reachable(self) -> bool:
        self.probes += 1
        return self.is_there

    async def after(self, error: ModelError, policy: RetryPolicy | None = None) -> Sequence[Retrying]:
        return [notice async for notice in self.waits.after(error, policy or RetryPolicy())]


@pytest.mark.parametrize("error", [GONE, CUT], ids=["no connection", "cut"])
@pytest.mark.parametrize("away", [0.5, 5, 60, 600])
async def test_the_next_try_starts_as_soon_as_the_network_is_back(error: ModelError, away: float) -> None:
    network = Network(away)
    offline, back = await network.after(error)
    assert (offline.is_offline, offline.delay, offline.reason) == (True, 600, str(error))
    assert (back.is_offline, back.delay, back.reason) == (False, 0, BACK)
    assert away <= network.clock.passed <= away + PROBE_SECONDS


async def test_a_wait_for_the_network_is_not_a_further_try() -> None:
    network = Network(5)
    for _ in range(50):
        assert (await network.after(GONE))[-1].reason == BACK
        network.is_there = False
        network.clock.at(network.clock.passed + 5, network.come_back)
    assert network.clock.passed == pytest.approx(250, abs=51)


async def test_patience_with_the_network_ends_with_a_last_try() -> None:
    network = Network(10_000)
    _, last = await network.after(GONE)
    assert "10 min" in last.reason
    assert "last try" in last.reason
    assert network.clock.passed == pytest.approx(600)
    with pytest.raises(ModelError, match="No connection came within 10 min") as caught:
        await network.after(GONE)
    assert caught.value.kind is ModelErrorKind.UNREACHABLE


async def test_a_refusal_after_the_last_try_is_told_as_it_is() -> None:
    network = Network(10_000)
    await network.after(GONE)
    busy = ModelError(ModelErrorKind.OVERLOADED, "busy", status=503)
    with pytest.raises(ModelError) as caught:
        await network.after(busy)
    assert caught.value is busy


async def test_without_patience_nothing_is_waited_for() -> None:
    network = Network(60)
    for error in (GONE, CUT, ModelError(ModelErrorKind.OVERLOADED, "busy")):
        with pytest.raises(ModelError):
            await network.after(error, RetryPolicy(patience=0))
    assert not network.clock.pauses


async def test_a_server_that_is_there_is_left_in_peace_between_tries() -> None:
    network = Network(0)
    waits = [(await network.after(CUT))[0] for _ in range(4)]
    assert [wait.delay for wait in waits] == [0.75, 1.5, 3, 6]
    assert not any(wait.is_offline for wait in waits)
    with pytest.raises(ModelError):
        await network.after(CUT)


@pytest.mark.parametrize(
    "error",
    [
        ModelError(ModelErrorKind.OVERLOADED, "busy", status=503),
        ModelError(ModelErrorKind.RATE_LIMIT, "slow down", status=429, retry_after=30),
        ModelError(ModelErrorKind.INTERRUPTED, "in the answer", status=500),
    ],
)
async def test_an_answer_of_the_server_is_no_sign_of_a_network_away(error: ModelError) -> None:
    network = Network(60)
    (notice,) = await network.after(error)
    assert (notice.is_offline, network.probes) == (False, 0)


@pytest.mark.parametrize(
    "error",
    [
        ModelError(ModelErrorKind.BAD_REQUEST, "strange", status=400),
        ModelError(ModelErrorKind.AUTHENTICATION, "no", status=401),
        ModelError(ModelErrorKind.UNREACHABLE, "a certificate of somebody else", final=True),
        ModelError(ModelErrorKind.RATE_LIMIT, "spent", status=429, final=True),
    ],
)
async def test_a_refusal_ends_at_once(error: ModelError) -> None:
    network = Network(60)
    with pytest.raises(ModelError) as caught:
        await network.after(error, PATIENT)
    assert caught.value is error
    assert not network.clock.pauses


async def test_a_wait_that_the_server_asked_for_goes_on_by_the_wall_clock_after_a_sleep() -> None:
    network = Network(0)
    network.clock.at(20, lambda: network.clock.sleep_computer(600))
    await network.after(ModelError(ModelErrorKind.RATE_LIMIT, "slow down", status=429, retry_after=300))
    assert network.clock.passed <= 20 + SLICE_SECONDS


async def test_the_sleep_of_the_computer_is_no_time_of_waiting_for_the_network() -> None:
    network = Network(610)
    network.clock.at(10, lambda: network.clock.sleep_computer(8 * 3600))
    network.clock.at(40, network.come_back)
    _, back = await network.after(GONE)
    assert back.reason == BACK
    assert network.clock.passed <= 40 + PROBE_SECONDS
