"""What a student's process may not ask of the kernel, though it needs no rights: each was possible once, as the text says."""

import ctypes
import os
import runpy
import textwrap
from pathlib import Path

import pytest

from attnlib.marking.assignment import Assignment
from attnlib.marking.inside import calls
from attnlib.marking.marker import Marker, right_cells

inside = runpy.run_path(str(Path(__file__).with_name("tricks.py")))["inside"]
pytestmark = pytest.mark.skipif(calls.platform_of() not in calls.PROCESSORS, reason="no filter for this processor")
SESSION, JOIN = -3, 1  # of kernel keys
HEAD = "import ctypes, os, socket, threading\nlibc = ctypes.CDLL(None, use_errno=True)"


def told(marker, body):
    """What a student's function finds out: the message that it raises."""
    body = textwrap.dedent(body).format(**calls.PROCESSORS[calls.platform_of()][1])
    return marker.mark(["import numpy as np", HEAD, inside(body)])[0][0].text


REACHES = {
    "a namespace of its own, with all rights in it": "raise ValueError('got it' if libc.unshare(0x10000000) == 0 else 'refused')",
    "memory that no limit counts": "raise ValueError('got it' if libc.shmget(0, 10**8, 0o1600) >= 0 else 'refused')",
    "messages that no limit counts": "raise ValueError('got it' if libc.msgget(0, 0o1600) >= 0 else 'refused')",
    "a key ring, which the next student sees": """
        made = libc.syscall({add_key}, b"user", b"note", b"x", 1, -3)
        raise ValueError('got it' if made >= 0 else 'refused')""",
    "sockets by another way": """
        ring = libc.syscall({io_uring_setup}, 8, ctypes.create_string_buffer(120))
        raise ValueError('got it' if ring >= 0 else 'refused')""",
    "the machine that this one runs in": """
        try:
            socket.socket(40, socket.SOCK_STREAM)
        except OSError:
            raise ValueError('refused')
        raise ValueError('got it')""",
    "the memory and time of thirty processes": """
        try:
            child = os.fork()
        except OSError:
            raise ValueError('refused')
        if child == 0: os._exit(0)
        raise ValueError('got it')""",
}


@pytest.mark.parametrize("what", REACHES)
def test_the_kernel_refuses(marker, what):
    text = told(marker, REACHES[what])
    assert "It raises ValueError: refused" in text, text


def test_the_keys_of_the_instructor_are_not_read(sandbox):
    numbers, libc = calls.PROCESSORS[calls.platform_of()][1], ctypes.CDLL(None)
    if libc.syscall(numbers["keyctl"], JOIN, None) < 0:  # a session of this test's own, as each login makes one
        pytest.skip("kernel keys are not allowed here")
    assert libc.syscall(numbers["add_key"], b"user", b"instructor", b"ticket", 6, SESSION) > 0
    with Marker(Assignment.of_lessons(["00"]), sandbox) as marker:
        body = """
        found = libc.syscall({keyctl}, 10, -3, b"user", b"instructor", 0)
        seen = ctypes.create_string_buffer(100)
        libc.syscall({keyctl}, 11, found, seen, 100)
        raise ValueError("saw " + seen.value.decode() + "!")
        """
        body = textwrap.dedent(body).format(**numbers)
        text = marker.mark([HEAD, inside(body, "total", "values")])[0][0].text
    assert "saw !" in text, text


def test_threads_and_local_sockets_work(marker):
    body = """
    one, other = socket.socketpair()
    thread = threading.Thread(target=one.send, args=(b"works",))
    thread.start()
    thread.join()
    raise ValueError(other.recv(9).decode())
    """
    assert "works" in told(marker, body)
    assert {mark.status for mark in marker.mark(right_cells(marker.assignment))[0]} == {"right"}


@pytest.mark.parametrize("machine", calls.PROCESSORS)
def test_the_filter_ends_whatever_is_asked(machine):
    """Each jump stays in the program, and every path of it comes to an answer."""
    kind, numbers = calls.PROCESSORS[machine]
    steps = [(int.from_bytes(s[:2], "little"), s[2], s[3]) for s in calls.rules(kind, numbers)]
    assert steps[-1][0] == calls.RETURN and len(steps) < 100
    for place, (_, if_true, if_not) in enumerate(steps):
        assert place + 1 + max(if_true, if_not) < len(steps) + (place == len(steps) - 1)
    assert os.uname().machine != machine or len(set(numbers.values())) == len(numbers)
