"""Gives up rights that a process needs no more, before it reads a file from a stranger (Linux).

Four walls, each by plain system calls: landlock (files can be read below given folders and written
below one), a network namespace of its own, a seccomp filter (no new programs, no sockets, no
signals, no changes of owners or modes), and limits on memory and file sizes. They hold for the rest
of the process's life and for every thread it starts, but not for threads that run already: go in
first, import libraries then.

What they do not do: hide how long something takes, or make a wrong answer right.
"""

import ctypes
import os
import platform
import resource
import stat
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 22, 38
_CLONE_NEWUSER, _CLONE_NEWNET, _CLONE_NEWIPC = 0x10000000, 0x40000000, 0x08000000
_CLONE_THREAD = 0x00010000
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446  # the same on all machines
_SIGKILL = 9

_READ = (1 << 2) | (1 << 3)
"""read a file, list a folder"""
_WRITE_FIRST = sum(1 << bit for bit in (1, *range(4, 13)))
"""write, remove and make anything: version 1 of landlock"""
_REFER, _TRUNCATE, _EXECUTE = 1 << 13, 1 << 14, 1 << 0
_FILE = 0b111 | _TRUNCATE

_AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_CLONE = {"x86_64": 56, "aarch64": 220}
_CLONE3 = 435
_PRLIMIT = {"x86_64": 302, "aarch64": 261}
_DENIED: dict[str, tuple[int, ...]] = {
    "x86_64": (
        # fork vfork execve kill ptrace; sockets; System V memory, queues, semaphores
        57, 58, 59, 62, 101, 41, 42, 43, 44, 46, 49, 50, 53, 288, 307, 29, 30, 31, 64, 68, 240,
        # chmod fchmod chown fchown lchown utime; mount umount pivot_root chroot; modules, reboot
        90, 91, 92, 93, 94, 132, 165, 166, 155, 161, 167, 168, 169, 170, 171, 175, 176, 313, 246,
        # attributes, times of files, keys, other processes' memory, tkill tgkill, handles
        188, 189, 190, 197, 198, 199, 200, 234, 235, 248, 249, 250, 260, 261, 268, 272, 280,
        298, 303, 304, 308, 310, 311, 320, 321, 322, 323, 129, 297, 133, 259,
    ),
    "aarch64": (
        221, 281, 129, 130, 131, 117, 198, 199, 200, 201, 202, 203, 206, 208, 211, 242, 243, 269,
        194, 195, 196, 186, 187, 190, 180, 52, 53, 54, 55, 5, 6, 7, 14, 15, 16, 88, 40, 39, 41, 51,
        224, 225, 105, 106, 273, 142, 104, 294, 217, 218, 219, 241, 268, 97, 264, 265, 270, 271,
        280, 282, 138, 240, 33, 161, 162, 170,
    ),
}  # fmt: skip
_DENIED_EVERYWHERE = (
    424,
    425,
    426,
    427,
    428,
    429,
    430,
    431,
    432,
    433,
    434,
    438,
    442,
    452,
    463,
    466,
)
"""signals by file descriptor, io_uring, the newer calls for mounts, modes and attributes"""


def missing() -> str | None:
    """Why this machine has no sandbox, in a few words; None if it has one."""
    if not sys.platform.startswith("linux"):
        return f"no sandbox on {sys.platform}: it needs Linux"
    if platform.machine() not in _AUDIT:
        return f"no sandbox on {platform.machine()} processors"
    version = _libc().syscall(_LANDLOCK_CREATE, None, ctypes.c_size_t(0), 1)
    if version < 1:
        return "the kernel has no landlock (Linux 5.13 or later, landlock enabled)"
    return None


def enter(readable: Iterable[Path], writable: Path, memory: int) -> None:
    """Shut this process in for good.

    Args:
        readable: folders below which files may still be read.
        writable: the one folder below which files may be made and changed.
        memory: address space in bytes; asking for more fails in the process.

    Raises:
        OSError: a wall could not be put up. The process must then end without reading the file.
    """
    libc = _libc()
    _checked(libc.prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0), "die with the parent")
    _checked(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")
    # Sockets are refused by the filter too: a machine that forbids namespaces is still safe.
    libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET | _CLONE_NEWIPC)
    _limit(resource.RLIMIT_AS, memory)
    _limit(resource.RLIMIT_FSIZE, 2**32)
    _limit(resource.RLIMIT_CORE, 0)
    _landlock(libc, readable, writable)
    _seccomp(libc)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(answer: int, what: str) -> int:
    if answer < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return answer


def _limit(what: int, most: int) -> None:
    _, hard = resource.getrlimit(what)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(what, (most, most))


def _landlock(libc: ctypes.CDLL, readable: Iterable[Path], writable: Path) -> None:
    version = _checked(libc.syscall(_LANDLOCK_CREATE, None, ctypes.c_size_t(0), 1), "landlock")
    write = _WRITE_FIRST | (_REFER if version >= 2 else 0) | (_TRUNCATE if version >= 3 else 0)
    handled = _EXECUTE | _READ | write | (1 << 15 if version >= 5 else 0)
    network = 0b11 if version >= 4 else 0
    scoped = 0b11 if version >= 6 else 0  # abstract sockets and signals stay inside
    rules = struct.pack("QQQ", handled, network, scoped)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = _checked(
        libc.syscall(_LANDLOCK_CREATE, rules, ctypes.c_size_t(size), 0), "landlock rules"
    )
    for folder in readable:
        _allow(libc, ruleset, folder, _READ)
    _allow(libc, ruleset, writable, _READ | write)
    _checked(libc.syscall(_LANDLOCK_RESTRICT, ruleset, 0), "landlock")
    os.close(ruleset)


def _allow(libc: ctypes.CDLL, ruleset: int, folder: Path, access: int) -> None:
    try:
        place = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        # Listing and making entries are rights about folders; a single file has none of them.
        of_files = access if stat.S_ISDIR(os.fstat(place).st_mode) else access & _FILE
        rule = struct.pack("=Qi", of_files, place)
        _checked(libc.syscall(_LANDLOCK_ADD, ruleset, 1, rule, 0), f"landlock for {folder}")
    finally:
        os.close(place)


def _seccomp(libc: ctypes.CDLL) -> None:
    machine = platform.machine()
    load, equal, at_least, any_bit, give = 0x20, 0x15, 0x35, 0x45, 0x06
    allow, kill = 0x7FFF0000, 0x80000000
    refuse, unknown = 0x00050000 | 1, 0x00050000 | 38  # EPERM, ENOSYS
    program = [
        (load, 0, 0, 4), (equal, 1, 0, _AUDIT[machine]), (give, 0, 0, kill),
        (load, 0, 0, 0), (at_least, 0, 1, 0x40000000), (give, 0, 0, kill),
        # A thread is fine, a process is not. glibc falls back from clone3, whose flags are hidden.
        (equal, 0, 1, _CLONE3), (give, 0, 0, unknown),
        (equal, 0, 4, _CLONE[machine]),
        (load, 0, 0, 16), (any_bit, 1, 0, _CLONE_THREAD), (give, 0, 0, refuse), (give, 0, 0, allow),
        # Its own limits may be read and lowered, those of others not touched.
        (equal, 0, 4, _PRLIMIT[machine]),
        (load, 0, 0, 16), (equal, 1, 0, 0), (give, 0, 0, refuse), (give, 0, 0, allow),
    ]  # fmt: skip
    for number in (*_DENIED[machine], *_DENIED_EVERYWHERE):
        program += [(equal, 0, 1, number), (give, 0, 0, refuse)]
    program.append((give, 0, 0, allow))
    code = b"".join(struct.pack("HBBI", *line) for line in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("HxxxxxxQ", len(program), ctypes.addressof(buffer))
    _checked(libc.prctl(_PR_SET_SECCOMP, 2, header, 0, 0), "the filter of system calls")
