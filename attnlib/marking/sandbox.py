"""Where students' code runs: behind namespaces of Linux, in a container, or (marked as unsafe) in a process alone."""

import importlib.util
import secrets
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import attnlib

PACKAGE = Path(attnlib.__file__).parent
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

# Nothing can be written, not even between submissions (files, shared memory, queues). The server is the container's root
# with three rights, which it needs to make each student's process another user's, without rights, and to end it.
CONTAINER = """
--network none --read-only --ipc none --sysctl kernel.shmmni=0 --sysctl kernel.msgmni=0
--memory 3g --memory-swap 3g --pids-limit 64
--user 0:0 --cap-drop ALL --cap-add SETUID --cap-add SETGID --cap-add KILL --security-opt no-new-privileges
--env OMP_NUM_THREADS=1 --env OPENBLAS_NUM_THREADS=1 --env MKL_NUM_THREADS=1
--entrypoint python3
"""


class NoSandbox(RuntimeError):
    """There is no sandbox on this machine, or it is broken."""


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
        return ["docker", "run", "-i", "--rm", *CONTAINER.split(), self.image, "-I", "-c", BOOT]

    def settings(self, scratch: str, torch: bool) -> dict:
        """What the server needs to know."""
        path = [] if self.mode == "docker" else library_folders()
        owner_of_nothing = 1_000_000 + secrets.randbelow(1_000_000_000)
        if self.mode == "docker":  # whose users may be mapped to 65,536 of the machine's
            owner_of_nothing = 10_000 + secrets.randbelow(50_000)
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
            "nobody": owner_of_nothing,
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
    shown = [Path(folder) for folder in system_folders(path)]

    def only_around(folder: Path) -> bool:
        """Whether a folder, such as a checkout with its .venv, exists in the sandbox only as the way to what is shown."""
        within = any(folder.is_relative_to(other) for other in shown)
        return not within and any(other.is_relative_to(folder) for other in shown)

    return sorted(str(one) for one in found if one.is_dir() and not only_around(one))
