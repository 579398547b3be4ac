"""Seccomp filter that blocks system calls of confined programs: a program for the kernel's packet filter.

Blocked are sockets that lead past the network namespace (AF_VSOCK reaches a virtual machine's host), typing into an
inherited terminal (TIOCSTI), files that run with their owner's rights (set-user-ID: one of root's in the workspace
would be a way out), and io_uring, whose calls the filter would not see. Pure: numbers from the kernel's headers in,
bytes out. It is not an allow-list because programs need nearly all other calls.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import field

from isthmus.record import record

EPERM, ENOSYS, EAFNOSUPPORT = 1, 38, 97

_LOAD, _JUMP_EQUAL, _JUMP_GREATER_EQUAL, _AND, _RETURN = 0x20, 0x15, 0x35, 0x54, 0x06
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
"""Offsets of a call's number, its architecture and its six arguments of 8 bytes; little-endian."""
_X32_BIT = 0x40000000
"""Bit that is set in the numbers of calls of x86_64's 32-bit variant."""
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_SET_ID_BITS = 0o6000
_O_CREAT = 0o100
_O_TMPFILE = 0o20000000
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C


@record
class _Machine:
    """An architecture's number in the kernel, and its calls; ``mode_arguments`` are those with a file's mode."""

    architecture: int
    socket: int
    ioctl: int
    missing: Sequence[int]
    """Calls that fail as not implemented: io_uring_setup and openat2, whose arguments a filter cannot see."""
    mode_arguments: Mapping[int, int]
    open_arguments: Mapping[int, int] = field(default_factory=dict[int, int])
    """Calls with flags in the argument of this number, and in the next one a mode that counts with O_CREAT only."""


_MACHINES = {
    "x86_64": _Machine(
        architecture=0xC000003E,
        socket=41,
        ioctl=16,
        missing=(425, 437),
        # chmod, fchmod, fchmodat, fchmodat2, creat, mknod, mknodat
        mode_arguments={90: 1, 91: 1, 268: 2, 452: 2, 85: 1, 133: 1, 259: 2},
        open_arguments={2: 1, 257: 2},  # open, openat
    ),
    "aarch64": _Machine(
        architecture=0xC00000B7,
        socket=198,
        ioctl=29,
        missing=(425, 437),
        # fchmod, fchmodat, fchmodat2, mknodat
        mode_arguments={52: 1, 53: 2, 452: 2, 33: 2},
        open_arguments={56: 2},  # openat
    ),
}


def filter_of(machine: str) -> bytes | None:
    """Return the filter for a machine as named by ``platform.machine()``; None if it is unknown."""
    known = _MACHINES.get(machine)
    return None if known is None else _encoded(_instructions(known))


_Instruction = tuple[int, int, int, int]
"""Code, number of instructions to skip if it holds and if not, and a value."""


def _instructions(machine: _Machine) -> list[_Instruction]:
    blocks = [
        _block(machine.socket, _allow_only(0, (_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK), EAFNOSUPPORT)),
        _block(machine.ioctl, _refuse(1, (_TIOCSTI, _TIOCLINUX), EPERM)),
        *(_block(number, [_fail(ENOSYS)]) for number in machine.missing),
        *(_block(number, _refuse_bits(at, _SET_ID_BITS)) for number, at in machine.mode_arguments.items()),
        *(_block(number, _refuse_set_id_file(at)) for number, at in machine.open_arguments.items()),
    ]
    return [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_JUMP_EQUAL, 1, 0, machine.architecture),
        _fail(ENOSYS),  # a program for another architecture, whose calls have other numbers
        (_LOAD, 0, 0, _NUMBER_AT),
        *([(_JUMP_GREATER_EQUAL, 0, 1, _X32_BIT), _fail(ENOSYS)] if machine.architecture == 0xC000003E else []),
        *(instruction for block in blocks for instruction in block),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _block(number: int, body: list[_Instruction]) -> list[_Instruction]:
    """Return instructions that run `body` for a call; the number of any other call stays loaded."""
    return [(_JUMP_EQUAL, 0, len(body), number), *body]


def _fail(error: int) -> _Instruction:
    return (_RETURN, 0, 0, _FAIL | error)


def _load(argument: int) -> _Instruction:
    return (_LOAD, 0, 0, _ARGUMENTS_AT + 8 * argument)


def _allow_only(argument: int, values: Sequence[int], error: int) -> list[_Instruction]:
    tests = [(_JUMP_EQUAL, len(values) - index, 0, value) for index, value in enumerate(values)]
    return [_load(argument), *tests, _fail(error), (_RETURN, 0, 0, _ALLOW)]


def _refuse(argument: int, values: Sequence[int], error: int) -> list[_Instruction]:
    tests = [(_JUMP_EQUAL, len(values) - index, 0, value) for index, value in enumerate(values)]
    return [_load(argument), *tests, (_RETURN, 0, 0, _ALLOW), _fail(error)]


def _refuse_bits(argument: int, bits: int) -> list[_Instruction]:
    return [_load(argument), (_AND, 0, 0, bits), (_JUMP_EQUAL, 0, 1, 0), (_RETURN, 0, 0, _ALLOW), _fail(EPERM)]


def _refuse_set_id_file(flags: int) -> list[_Instruction]:
    return [
        _load(flags),
        (_AND, 0, 0, _O_CREAT | _O_TMPFILE),
        (_JUMP_EQUAL, 0, 1, 0),
        (_RETURN, 0, 0, _ALLOW),
        *_refuse_bits(flags + 1, _SET_ID_BITS),
    ]


def _encoded(instructions: Sequence[_Instruction]) -> bytes:
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in instructions)
