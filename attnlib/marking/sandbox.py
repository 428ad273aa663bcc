"""Where students' code runs: behind namespaces of Linux, in a container, or (marked as unsafe) in a process alone."""

import contextlib
import importlib.util
import json
import os
import secrets
import select
import shutil
import signal
import struct
import subprocess
import sys
import sysconfig
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import attnlib

PACKAGE = Path(attnlib.__file__).parent
OUTSIDE = ("attnlib.marking.inside.wire", "attnlib.marking.inside.jail", "attnlib.marking.inside.server")
INSIDE = (
    "attnlib.exercises.compare",
    "attnlib.marking.codec",
    "attnlib.marking.inside.reading",
    "attnlib.marking.inside.describing",
    "attnlib.marking.inside.student",
)
LIBRARIES = ("numpy", "torch", "scipy", "einops")  # which answers may import; NumPy and PyTorch beforehand

BOOT = """
import json, os, sys
def take(n):
    data = b""
    while len(data) < n:
        part = os.read(0, n - len(data))
        if not part: sys.exit("the marker is gone")
        data += part
    return data
start = json.loads(take(int.from_bytes(take(4), "little")))
wire = {}
exec(compile(start["first"][0][1], "<wire>", "exec"), wire)
for name, source in start["first"]:
    wire["make_module"](name, source)
sys.modules["attnlib.marking.inside.server"].main(start["settings"], start["modules"])
"""


class NoSandbox(RuntimeError):
    """There is no sandbox on this machine, or it is broken."""


class ServerDied(RuntimeError):
    """The server in the sandbox is gone, or does not answer."""


@dataclass(frozen=True)
class Sandbox:
    """How students' code is kept away from everything. `mode` is unshare, docker or plain; plain is unsafe."""

    mode: str
    image: str = ""
    seconds: int = 10  # of processor time, a process
    wall: int = 40  # seconds until a request must be answered, also on a busy machine
    memory: int = 2 * 2**30  # bytes beyond what the server has mapped
    file_size: int = 2**22
    processes: int = 32
    reply: int = 2**24  # bytes, a message

    @property
    def label(self) -> str:
        """What reports say of it."""
        return "UNSAFE: no sandbox" if self.mode == "plain" else f"sandbox: {self.mode}"

    def command(self) -> list[str]:
        """The command that starts the server."""
        if self.mode != "docker":
            return [sys.executable, "-I", "-S", "-c", BOOT]
        limits = "--network none --read-only --tmpfs /tmp:size=32m,mode=1777 --memory 3g --memory-swap 3g"
        rights = "--pids-limit 64 --cap-drop ALL --security-opt no-new-privileges --user 65534:65534"
        return ["docker", "run", "-i", "--rm", *limits.split(), *rights.split(), "--entrypoint", "python3", self.image] + [
            "-I",
            "-c",
            BOOT,
        ]

    def settings(self, scratch: str, torch: bool) -> dict:
        """What the server needs to know."""
        path = [] if self.mode == "docker" else library_folders()
        return {
            "mode": self.mode,
            "scratch": scratch,
            "path": path,
            "binds": system_folders(path),
            "hidden": hidden_folders(path),
            "imports": ["numpy", "torch"] if torch else ["numpy"],
            "seconds": self.seconds,
            "wall": self.wall,
            "memory": self.memory,
            "file_size": self.file_size,
            "processes": self.processes,
            "reply": self.reply,
            "nobody": 1_000_000 + secrets.randbelow(1_000_000_000),  # a user that owns nothing here
        }


def library_folders() -> list[str]:
    """Folders from which the libraries are imported."""
    found = []
    for name in LIBRARIES:
        spec = importlib.util.find_spec(name)
        if spec and spec.submodule_search_locations:
            found.append(str(Path(next(iter(spec.submodule_search_locations))).resolve().parent))
    return list(dict.fromkeys(found))


def system_folders(path: list[str]) -> list[str]:
    """What exists in the sandbox: the interpreter's libraries, the system's, and the folders of the packages."""
    names = ("stdlib", "platstdlib")
    paths = [sysconfig.get_path(name) for name in names] + [sysconfig.get_config_var("DESTSHARED") or ""]
    paths += [str(Path(sys.base_prefix, "lib")), str(Path(sys.base_exec_prefix, "lib"))]
    paths += ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache", "/etc/alternatives"]
    found: list[str] = []
    for one in sorted({*filter(None, paths), *path}, key=len):
        if Path(one).exists() and not any(Path(one).is_relative_to(other) for other in found):
            found.append(one)
    return found


def hidden_folders(path: list[str]) -> list[str]:
    """Copies of this package, and of the course around it, that would otherwise be seen in the sandbox."""
    found = {PACKAGE.resolve(), PACKAGE}
    if (PACKAGE.parent / "pyproject.toml").exists():
        found.add(PACKAGE.parent.resolve())
    for folder in {*path, *system_folders(path)}:
        for pattern in ("attnlib", "python*/*-packages/attnlib", "python*/*-packages/attnlib*.data"):
            found |= set(Path(folder).glob(pattern))
    return sorted(str(one) for one in found if one.is_dir())


class Server:
    """A running server. Not for several threads."""

    def __init__(self, sandbox: Sandbox, torch: bool):
        self.sandbox = sandbox
        self.scratch = tempfile.mkdtemp(prefix="marking-")
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115
        place = "/student" if sandbox.mode == "unshare" else "/tmp" if sandbox.mode == "docker" else self.scratch
        variables = {"PATH": os.environ.get("PATH", "") if sandbox.mode == "docker" else "/usr/bin", "HOME": place}
        variables |= {f"{kind}_NUM_THREADS": "1" for kind in ("OMP", "OPENBLAS", "MKL")}
        variables |= {"LANG": "C.UTF-8", "TMPDIR": place, "USER": "student", "PYTHONDONTWRITEBYTECODE": "1"}
        self.process = subprocess.Popen(
            sandbox.command(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env=variables,
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
            self.close()
            raise NoSandbox(f"the sandbox ({sandbox.mode}) does not start: {self.said() or error}") from None
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
        shutil.rmtree(self.scratch, ignore_errors=True)

    def said(self) -> str:
        """The last line that the server said on its way out."""
        self.errors.seek(0)
        lines = self.errors.read()[-10_000:].decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else ""

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
    """The best sandbox that works here; with `unsafe` a process alone. Without any: NoSandbox, saying what to do."""
    if unsafe:
        return Sandbox("plain", **limits)
    if sys.platform != "linux":
        raise NoSandbox(
            f"marking needs Linux for its sandbox; this is {sys.platform}. Run it in a Linux machine or in WSL 2, or use "
            "--unsafe, which keeps students' code in a process of its own and no more."
        )
    reasons = []
    for sandbox in [Sandbox("unshare", **limits), *([Sandbox("docker", image, **limits)] if image else [])]:
        try:
            Server(sandbox, torch=False).close()
            return sandbox
        except (NoSandbox, OSError) as error:
            reasons.append(str(error))
    raise NoSandbox(
        "no sandbox works here, so students' code would reach solutions and marks. "
        + "; ".join(reasons)
        + ". On Ubuntu 24.04, `sysctl kernel.apparmor_restrict_unprivileged_userns=0` allows namespaces to ordinary users. "
        "Or name a container image that has Python, NumPy and PyTorch: --image NAME. Or --unsafe, which every report will say."
    )
