"""The server that runs in the sandbox, as the marker sees it: a process that answers messages. And which sandbox works here."""

import contextlib
import json
import os
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from attnlib.marking.sandbox import PACKAGE, NoSandbox, Sandbox

OUTSIDE = (
    "attnlib.marking.inside.wire",
    "attnlib.marking.inside.calls",
    "attnlib.marking.inside.jail",
    "attnlib.marking.inside.server",
)
INSIDE = (
    "attnlib.exercises.compare",
    "attnlib.marking.codec",
    "attnlib.marking.inside.reading",
    "attnlib.marking.inside.describing",
    "attnlib.marking.inside.student",
)

SETTINGS = (  # of Linux, by which ordinary users get no namespaces: the value that forbids, and one that allows
    ("user.max_user_namespaces", "0", "15000"),
    ("kernel.unprivileged_userns_clone", "0", "1"),  # Debian
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),  # Ubuntu, from 23.10 on
)


class ServerDied(RuntimeError):
    """The server in the sandbox is gone, or does not answer."""


class Server:
    """A running server. Not for several threads."""

    def __init__(self, sandbox: Sandbox, torch: bool):
        self.sandbox = sandbox
        self.scratch = tempfile.mkdtemp(prefix="marking-")
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115
        place = "/student" if sandbox.mode == "unshare" else self.scratch
        variables = {"PATH": "/usr/bin", "HOME": place, "TMPDIR": place, "USER": "student", "LANG": "C.UTF-8"}
        variables |= {f"{kind}_NUM_THREADS": "1" for kind in ("OMP", "OPENBLAS", "MKL")}
        variables |= {"PYTHONDONTWRITEBYTECODE": "1"}
        self.process = subprocess.Popen(
            sandbox.command(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env=None
            if sandbox.mode == "docker"
            else variables,  # Docker's client keeps its own to itself: DOCKER_HOST, …
            cwd="/",
            bufsize=0,
            start_new_session=True,  # Ctrl-C reaches the marker, which ends the server
        )
        modules = [*INSIDE, "attnlib.exercises.modules"] if torch else INSIDE
        start = {
            "settings": sandbox.settings(self.scratch, torch),
            "first": [[name, source_of(name)] for name in OUTSIDE],
            "modules": [[name, source_of(name)] for name in modules],
        }
        data = json.dumps(start).encode()
        try:
            self._write(struct.pack("<I", len(data)) + data)
            kind, _ = self._read(time.monotonic() + 120)
        except ServerDied as error:
            said = self.said() or error
            self.close()
            raise NoSandbox(f"the sandbox ({sandbox.mode}) does not start: {said}") from None
        assert kind == b"H"

    def ask(self, data: bytes) -> tuple[bytes, bytes]:
        """Send a request to the student's process; a reply of kind O, or of kind D if the process ended."""
        self._write(b"R" + struct.pack("<I", len(data)) + data)
        return self._read(time.monotonic() + self.sandbox.wall + 20)

    def end(self) -> None:
        """End the student's process, so that the next request starts a fresh one."""
        self._write(b"E" + struct.pack("<I", 0))

    def close(self) -> None:
        """End the server and all that it started."""
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=3)
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.process.stdout.close()
        self.errors.close()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def said(self) -> str:
        """The last line that the server said on its way out."""
        self.errors.seek(0)
        lines = self.errors.read()[-10_000:].decode("utf-8", "replace").splitlines()
        lines = [line for line in lines if line.strip() and "docker run --help" not in line]
        return lines[-1].strip() if lines else ""

    def _write(self, data: bytes) -> None:
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(self.process.stdin.fileno(), rest) :]
        except OSError as error:
            raise ServerDied(str(error)) from None

    def _read(self, deadline: float) -> tuple[bytes, bytes]:
        head = self._exactly(5, deadline)
        length = struct.unpack("<I", head[1:])[0]
        if head[:1] not in (b"H", b"O", b"D") or length > self.sandbox.reply:
            raise ServerDied("it sent what is no message")
        return head[:1], self._exactly(length, deadline)

    def _exactly(self, length: int, deadline: float) -> bytes:
        parts, descriptor = [], self.process.stdout.fileno()
        while length:
            if not select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise ServerDied("it does not answer")
            part = os.read(descriptor, min(length, 2**20))
            if not part:
                raise ServerDied("it ended")
            parts.append(part)
            length -= len(part)
        return b"".join(parts)


def source_of(module: str) -> str:
    """Source of a module of this package."""
    return PACKAGE.joinpath(*module.split(".")[1:]).with_suffix(".py").read_text(encoding="utf-8")


def choose(unsafe: bool = False, image: str = "", **limits: int) -> Sandbox:
    """Namespaces, or the container of an image that is named; with `unsafe` a process alone. NoSandbox says what to do."""
    if sys.platform != "linux":
        raise NoSandbox(
            f"marking needs Linux; this is {sys.platform}. Run it in a Linux machine, in WSL 2 or in a container."
        )
    if unsafe:
        return Sandbox("plain", **limits)
    sandbox = Sandbox("docker" if image else "unshare", image, **limits)
    try:
        Server(sandbox, torch=False).close()
        return sandbox
    except (NoSandbox, OSError) as error:
        reason = str(error)
    advice = f"{allowing()}Or name a container image that has Python, NumPy and PyTorch: --image NAME."
    if image:
        advice = f"Is this what you expect: docker run --rm {image} python3 -c 'import numpy, torch' ?"
    raise NoSandbox(
        f"no sandbox works here, so students' code would reach solutions and marks: {reason}. {advice} "
        "Or --unsafe, which every report will say."
    )


def allowing() -> str:
    """How ordinary users get namespaces, if a setting of this machine keeps them from it."""
    found = []
    for setting, off, on in SETTINGS:
        path = Path("/proc/sys", setting.replace(".", "/"))
        if path.exists() and path.read_text(encoding="ascii").strip() == off:
            found.append(f"`sysctl {setting}={on}`")
    return f"Ordinary users may not make namespaces here; as root, {' and '.join(found)} allows it. " if found else ""
