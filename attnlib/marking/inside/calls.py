"""Which system calls a student's process may make: all but those that need no rights and yet reach beyond its walls.

Namespaces leave some things shared. Kernel keys pass from process to process, sockets between a virtual machine and its
host know no network namespace, and System V memory and further processes are counted by no limit of one process. A filter
of the kernel (seccomp), which holds until the process ends, refuses what leads there. Standard library only.
"""

import ctypes
import errno
import os
import platform
import struct

FILTER, SECCOMP = 2, 22  # of prctl
ALLOW, REFUSE = 0x7FFF0000, 0x00050000  # with the error's number
NUMBER, KIND, FIRST = 0, 4, 16  # where the filter finds the call's number, the processor's kind and the first argument
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
THREAD = 0x10000  # of clone: not a process of its own
LOCAL = 1  # sockets between processes of one machine, which a network namespace keeps within it
REFUSED = (
    *("unshare", "setns", "fork", "vfork"),
    *("add_key", "request_key", "keyctl"),
    *("shmget", "msgget", "semget"),
    *("io_uring_setup", "userfaultfd", "bpf", "perf_event_open"),  # the first makes sockets, too
)
PROCESSORS = {  # kind, and the numbers of the calls; fork and vfork are not on all
    "x86_64": (
        0xC000003E,
        dict(clone=56, clone3=435, socket=41, unshare=272, setns=308, fork=57, vfork=58, add_key=248, request_key=249)
        | dict(keyctl=250, shmget=29, msgget=68, semget=64, io_uring_setup=425, userfaultfd=323, bpf=321)
        | dict(perf_event_open=298),
    ),
    "aarch64": (
        0xC00000B7,
        dict(clone=220, clone3=435, socket=198, unshare=97, setns=268, add_key=217, request_key=218, keyctl=219)
        | dict(shmget=194, msgget=186, semget=190, io_uring_setup=425, userfaultfd=282, bpf=280, perf_event_open=241),
    ),
}
OTHER_NUMBERS = 0x40000000  # from here on x86_64 counts the same calls once more


def refuse_calls() -> None:
    """Install the filter for this process. On processors whose calls are not known here there is none."""
    if platform_of() not in PROCESSORS:
        return
    program = b"".join(rules(*PROCESSORS[platform_of()]))
    kept = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(kept))
    if ctypes.CDLL(None, use_errno=True).prctl(SECCOMP, FILTER, header, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl(PR_SET_SECCOMP): {os.strerror(number)}")


def platform_of() -> str:
    """The processor's kind, as the kernel calls it; none for a Python of 32 bits, whose calls have other numbers."""
    return os.uname().machine if platform.architecture()[0] == "64bit" else ""


def rules(kind: int, numbers: dict[str, int]) -> list[bytes]:
    """The filter's instructions. Each jump skips so many of those that follow: if true, if not."""
    denied, unknown, away = (REFUSE | number for number in (errno.EPERM, errno.ENOSYS, errno.ENETUNREACH))
    made = [
        *(step(LOAD, KIND), step(EQUAL, kind, 1, 0), step(RETURN, denied)),
        *(step(LOAD, NUMBER), step(AT_LEAST, OTHER_NUMBERS, 0, 1), step(RETURN, denied)),
        *(step(EQUAL, numbers["clone3"], 0, 1), step(RETURN, unknown)),  # the C library then takes clone
    ]
    for name in filter(numbers.get, REFUSED):
        made += [step(EQUAL, numbers[name], 0, 1), step(RETURN, denied)]
    for name, test, answer in (("clone", (ANY_BIT, THREAD), denied), ("socket", (EQUAL, LOCAL), away)):
        made += [step(EQUAL, numbers[name], 0, 4), step(LOAD, FIRST), step(*test, 1, 0)]
        made += [step(RETURN, answer), step(RETURN, ALLOW)]
    return [*made, step(RETURN, ALLOW)]


def step(code: int, value: int, if_true: int = 0, if_not: int = 0) -> bytes:
    """One instruction."""
    return struct.pack("@HBBI", code, if_true, if_not, value)
