"""The filter of system calls, run by an interpreter of the kernel's packet filter; the real one runs in tests/peers."""

import struct

import pytest

from isthmus.sandbox.system_calls import filter_of

ALLOW = 0x7FFF0000
FAIL = 0x00050000
X86_64, AARCH64, I386 = 0xC000003E, 0xC00000B7, 0x40000003


def run(program: bytes, architecture: int, number: int, *arguments: int) -> int:
    """Return the result of the filter for a call."""
    data = struct.pack("<iIQ6Q", number, architecture, 0, *arguments, *(0,) * (6 - len(arguments)))
    instructions = [struct.unpack_from("<HBBI", program, at) for at in range(0, len(program), 8)]
    at = accumulator = 0
    while True:
        code, when, when_not, value = instructions[at]
        at += 1
        match code:
            case 0x20:
                (accumulator,) = struct.unpack_from("<I", data, value)
            case 0x15:
                at += when if accumulator == value else when_not
            case 0x35:
                at += when if accumulator >= value else when_not
            case 0x54:
                accumulator &= value
            case 0x06:
                return value
            case _:
                raise AssertionError(f"unknown instruction {code:#x}")


X86_64_CALLS = {
    "socket": 41,
    "ioctl": 16,
    "chmod": 90,
    "fchmodat": 268,
    "openat": 257,
    "io_uring_setup": 425,
    "read": 0,
}
AARCH64_CALLS = {
    "socket": 198,
    "ioctl": 29,
    "chmod": 52,
    "fchmodat": 53,
    "openat": 56,
    "io_uring_setup": 425,
    "read": 63,
}
MACHINES = [("x86_64", X86_64, X86_64_CALLS), ("aarch64", AARCH64, AARCH64_CALLS)]


@pytest.mark.parametrize(("machine", "architecture", "calls"), MACHINES)
@pytest.mark.parametrize(
    ("call", "arguments", "answer"),
    [
        ("socket", (1, 1), ALLOW),
        ("socket", (2, 1), ALLOW),
        ("socket", (10, 2), ALLOW),
        ("socket", (16, 3), ALLOW),
        ("socket", (40, 1), FAIL | 97),
        ("socket", (38, 5), FAIL | 97),
        ("socket", (17, 3), FAIL | 97),
        ("ioctl", (0, 0x5413), ALLOW),
        ("ioctl", (0, 0x5412), FAIL | 1),
        ("ioctl", (0, 0xFFFFFFFF00005412), FAIL | 1),
        ("chmod", (0, 0o755), ALLOW),
        ("chmod", (0, 0o4755), FAIL | 1),
        ("chmod", (0, 0o2755), FAIL | 1),
        ("chmod", (0, 0o1777), ALLOW),
        ("fchmodat", (0, 0, 0o4000), FAIL | 1),
        ("openat", (0, 0, 0, 0o4755), ALLOW),
        ("openat", (0, 0, 0o102, 0o644), ALLOW),
        ("openat", (0, 0, 0o102, 0o4755), FAIL | 1),
        ("openat", (0, 0, 0o20200002, 0o4755), FAIL | 1),
        ("io_uring_setup", (1,), FAIL | 38),
        ("read", (40, 0o4755, 0o4755), ALLOW),
    ],
)
def test_what_is_closed_fails_and_the_rest_goes_on(
    machine: str, architecture: int, calls: dict[str, int], call: str, arguments: tuple[int, ...], answer: int
) -> None:
    program = filter_of(machine)
    assert program is not None
    assert run(program, architecture, calls[call], *arguments) == answer


def test_calls_with_other_numbers_are_not_there() -> None:
    program = filter_of("x86_64")
    assert program is not None
    assert run(program, I386, 102, 1) == FAIL | 38
    assert run(program, X86_64, 0x40000000 | 41, 2, 1) == FAIL | 38


def test_an_unknown_machine_has_no_filter() -> None:
    assert filter_of("riscv64") is None
