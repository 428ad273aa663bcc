"""The forking server: it imports NumPy, and PyTorch where it is needed, once, and makes a process for each submission.

It passes messages on and reads none: for each submission it forks a manager, which forks the student's process and hands
messages to and fro until the submission is done. So the server's memory, which all students inherit a copy of, never
holds another student's code or a solution.
"""

import contextlib
import gc
import importlib
import importlib.machinery
import os
import select
import signal
import struct
import sys
import time

from attnlib.marking.inside import jail
from attnlib.marking.inside.wire import make_module, read_frame, write_frame


def main(settings: dict, modules: list[list[str]]) -> None:
    """Go behind the wall, import, and serve until the marker closes the pipe."""
    jail.enter(settings)
    sys.path[:] = [*sys.path, *settings["path"]]
    seen = importlib.machinery.PathFinder.find_spec("attnlib", sys.path)
    if seen and seen.origin and settings["mode"] != "plain":
        sys.exit(f"the solutions can be imported there, from {seen.origin}")
    for name in settings["imports"]:
        importlib.import_module(name)
    for name, source in modules:
        make_module(name, source)
    if "torch" in sys.modules:
        warm_up()
    gc.collect()
    gc.freeze()  # what students' processes share with this one stays shared
    write_frame(1, b"H", b"")
    while True:
        manager = os.fork()
        if manager == 0:
            code = 3
            try:
                code = manage(settings)
            finally:
                os._exit(code)
        _, status = os.waitpid(manager, 0)
        if settings["mode"] != "unshare":
            jail.sweep(settings)
        if status != 0 and os.waitstatus_to_exitcode(status) == 1:
            return  # the marker is gone
        if status != 0:
            write_frame(1, b"D", b"X")


def warm_up() -> None:
    """Do once what PyTorch does at the first use of a thing, so that not every student's process does it."""
    import torch

    with contextlib.suppress(ImportError):
        importlib.import_module("torch.fx.experimental.symbolic_shapes")  # which `torch._check` brings, 0.4 s later
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        layer = torch.nn.Linear(2, 2)
        torch.nn.LayerNorm(2)(layer(torch.zeros(1, 2))).softmax(-1)
    torch.optim.SGD(layer.parameters(), lr=0.1)  # the first optimizer imports 300 modules, which takes 0.6 s


def manage(settings: dict) -> int:
    """Serve one submission. 0: it is done, or its process died; 1: the marker is gone."""
    requests, replies = os.pipe(), os.pipe()
    jail.new_processes(settings)
    student = os.fork()
    if student == 0:
        try:
            jail.confine(settings, (requests[0], replies[1]))
            from attnlib.marking.inside.student import serve

            serve(requests[0], replies[1])
        finally:
            os._exit(0)
    os.close(requests[0])
    os.close(replies[1])
    os.set_blocking(requests[1], False)
    try:
        while True:
            request = read_frame(0)
            if request is None or request[0] == b"E":
                return 1 if request is None else 0
            kind, data = exchange(settings, request, requests[1], replies[0])
            if kind == b"O":
                write_frame(1, kind, data)
                continue
            os.kill(student, signal.SIGKILL)
            _, status, usage = os.wait4(student, 0)
            student = 0
            write_frame(1, b"D", reason(settings, data, status, usage.ru_utime + usage.ru_stime))
            return 0
    finally:
        if student:
            os.kill(student, signal.SIGKILL)
            os.waitpid(student, 0)


def exchange(settings: dict, request: tuple[bytes, bytes], into: int, out: int) -> tuple[bytes, bytes]:
    """Hand a request over and wait for its reply; the kind D if there is none, with the last progress that was told."""
    deadline, progress = time.monotonic() + settings["wall"], b"\xff" * 4
    sign = os.urandom(8)  # replies to earlier requests, from processes that an answer has started, do not count
    rest = memoryview(request[0] + struct.pack("<I", len(request[1]) + len(sign)) + sign + request[1])
    received = bytearray()
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            return b"D", b"T" + progress
        readable, writable, _ = select.select([out], [into] if rest else [], [], left)
        if writable:
            try:
                rest = rest[os.write(into, rest) :]
            except BrokenPipeError:
                rest = rest[len(rest) :]
        if not readable:
            continue
        part = os.read(out, 2**20)
        if not part:
            return b"D", b"E" + progress
        received += part
        while len(received) >= 5:
            kind, length = bytes(received[:1]), struct.unpack_from("<I", received, 1)[0]
            if kind not in (b"P", b"O") or length > settings["reply"] or (kind == b"P" and length != 4):
                return b"D", b"B" + progress
            if len(received) < 5 + length:
                break
            data = bytes(received[5 : 5 + length])
            del received[: 5 + length]
            if kind == b"O" and data[: len(sign)] == sign:
                return kind, data[len(sign) :]
            progress = data if kind == b"P" else progress


def reason(settings: dict, data: bytes, status: int, seconds: float) -> bytes:
    """Why a student's process ended: T time, C processor time, K killed, S signal, E exit, B babble; then its progress."""
    kind = data[:1]
    if kind == b"E":
        code = os.waitstatus_to_exitcode(status)
        if code == -signal.SIGKILL:
            kind = b"C" if seconds > settings["seconds"] - 1 else b"K"
        elif code < 0:
            kind = b"S"
    return kind + data[1:5]
