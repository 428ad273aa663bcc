"""Walls around the server and around each student's process: namespaces, mounts and limits, by the system calls themselves.

The server gets its own users, processes, network and root folder, in which only the interpreter, its libraries and the
packages that answers need exist, read-only. Each student's process gets, within that, its own processes and an empty
folder, and no rights. Linux only; standard library only.
"""

import ctypes
import os
import resource
import signal
from pathlib import Path
from typing import Any

from attnlib.marking.inside.calls import refuse_calls

NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
RDONLY, NOSUID, NODEV, NOEXEC, REMOUNT, BIND, REC, PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
KEPT_FLAGS = {1: RDONLY, 2: NOSUID, 4: NODEV, 8: NOEXEC, 1024: 1024, 2048: 2048, 4096: 1 << 21}  # of statvfs: of mount
DETACH, DEATH_SIGNAL, DUMPABLE, BOUNDING_DROP, SUBREAPER, NO_NEW_PRIVILEGES = 2, 1, 4, 24, 36, 38
DEVICES = ("null", "zero", "full", "random", "urandom")
LINKS = ("bin", "sbin", "lib", "lib32", "lib64")  # of /, which are links into /usr nowadays
SMALL = "size=16m,nr_inodes=4096,mode=1777"

libc = ctypes.CDLL(None, use_errno=True)


def call(name: str, *args: Any) -> None:
    """A system call through the C library, or OSError."""
    if getattr(libc, name)(*args) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """Mount something somewhere."""
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind)]
    try:
        call("mount", *encoded, ctypes.c_ulong(flags), None if data is None else data.encode())
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror} ({kind or 'bind'} on {target})") from None


def enter(settings: dict) -> None:
    """Put this process behind the outer wall and return there, in a child; this process waits for it and ends with it."""
    if settings["mode"] != "unshare":
        settings["root"] = settings["mode"] == "docker"
        if settings["root"] and os.getpid() != 1:  # `sweep` ends all processes that it sees but the first
            raise OSError(f"in a container this has to be the first process, not number {os.getpid()}")
        call("prctl", DUMPABLE, 0, 0, 0, 0)
        call("prctl", SUBREAPER, 1, 0, 0, 0)
        return
    user, group = os.geteuid(), os.getegid()
    walls = NEWNS | NEWPID | NEWNET | NEWIPC | NEWUTS
    settings["root"] = user == 0 and libc.unshare(walls) == 0
    if not settings["root"]:
        call("unshare", walls | NEWUSER)
        be(0, user, group)
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 255)
    call("prctl", DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    build_root(settings["scratch"], settings["binds"], settings["hidden"])


def be(inside: int, user: int, group: int) -> None:
    """Become a user with this number in the new namespace of users."""
    Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    Path("/proc/self/uid_map").write_text(f"{inside} {user} 1", encoding="ascii")
    Path("/proc/self/gid_map").write_text(f"{inside} {group} 1", encoding="ascii")


def build_root(scratch: str, binds: list[str], hidden: list[str]) -> None:
    """Make a root folder of these folders alone, read-only, and change into it."""
    mount("none", "/", None, REC | PRIVATE)
    mount("tmpfs", scratch, "tmpfs", NOSUID | NODEV, "size=1m,mode=755")
    for name in LINKS:
        if Path("/", name).is_symlink():
            Path(scratch, name).symlink_to(Path("/", name).readlink())
    for path in [*binds, *(f"/dev/{name}" for name in DEVICES)]:
        if Path(path).exists() and not Path(scratch + path).is_symlink():
            bind(path, scratch + path)
    for path in hidden:
        if Path(scratch + path).is_dir():
            mount("tmpfs", scratch + path, "tmpfs", NOSUID | NODEV | RDONLY, "size=4k,mode=755")
    for name in ("proc", "student"):
        Path(scratch, name).mkdir(exist_ok=True)
    mount("proc", scratch + "/proc", "proc", NOSUID | NODEV | NOEXEC)
    mount("tmpfs", scratch + "/student", "tmpfs", NOSUID | NODEV, SMALL)
    os.chdir(scratch)
    call("pivot_root", b".", b".")
    call("umount2", b".", DETACH)
    os.chdir("/")
    mount("none", "/", None, REMOUNT | BIND | RDONLY | NOSUID | NODEV)


def bind(path: str, target: str) -> None:
    """Show a folder or file in another place, read-only unless it is a device."""
    if Path(path).is_dir():
        Path(target).mkdir(parents=True, exist_ok=True)
    else:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        Path(target).touch()
    mount(path, target, None, BIND | REC)
    if not path.startswith("/dev/"):
        kept = os.statvfs(target).f_flag
        flags = sum(flag for bit, flag in KEPT_FLAGS.items() if kept & bit and flag not in (RDONLY, NOSUID, NODEV))
        mount("none", target, None, REMOUNT | BIND | RDONLY | NOSUID | NODEV | flags)


def new_processes(settings: dict) -> None:
    """From now on, children of this process live in a list of processes of their own and end with its first."""
    if settings["mode"] == "unshare":
        call("unshare", NEWPID)
    else:
        call("prctl", SUBREAPER, 1, 0, 0, 0)


def confine(settings: dict, keep: tuple[int, int]) -> None:
    """Put this process, a student's, behind the inner wall: no files but its own, no rights, limits on all it can use."""
    mapped = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    null = os.open("/dev/null", os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    lowest, highest = sorted(keep)
    os.closerange(3, lowest)
    os.closerange(lowest + 1, highest)
    os.closerange(highest + 1, 4096)
    os.setsid()
    if settings["mode"] == "unshare":
        user, group = os.geteuid(), os.getegid()
        call("unshare", NEWNS | NEWIPC | (0 if settings["root"] else NEWUSER))
        if not settings["root"]:
            be(1000, user, group)
        mount("tmpfs", "/proc", "tmpfs", NOSUID | NODEV | RDONLY, "size=4k,mode=755")
        mount("tmpfs", "/student", "tmpfs", NOSUID | NODEV, SMALL)
    if settings["mode"] != "plain":
        drop_rights(settings)
    os.chdir({"unshare": "/student", "docker": "/"}.get(settings["mode"], settings["scratch"]))
    call("prctl", NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    call("prctl", DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    limits = {
        resource.RLIMIT_AS: mapped + settings["memory"],
        resource.RLIMIT_CPU: settings["seconds"],
        resource.RLIMIT_FSIZE: settings["file_size"],
        resource.RLIMIT_NOFILE: 64,
        resource.RLIMIT_CORE: 0,
    }
    if settings["mode"] != "plain":  # there it would count the user's other processes
        limits[resource.RLIMIT_NPROC] = settings["processes"]
    for limit, most in limits.items():
        hard = resource.getrlimit(limit)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(limit, (most, most))
    if settings["mode"] != "plain":
        refuse_calls()


def drop_rights(settings: dict) -> None:
    """Give up all capabilities for good; where the server is the real root, become a user that owns nothing."""
    last = 63
    for capability in range(last + 1):
        libc.prctl(BOUNDING_DROP, capability, 0, 0, 0)
    if settings.get("root"):
        os.setgroups([])
        os.setresgid(settings["nobody"], settings["nobody"], settings["nobody"])
        os.setresuid(settings["nobody"], settings["nobody"], settings["nobody"])
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    call("capset", header, (ctypes.c_uint32 * 6)())


def sweep(settings: dict) -> None:
    """End what a student's process may have left behind, where no list of processes of its own does that."""
    if settings["mode"] == "docker":
        try:
            os.kill(-1, signal.SIGKILL)  # all but the first process, this one, are the student's
        except ProcessLookupError:
            return
    for _ in range(1_000):
        for child in children():
            os.kill(child, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def children() -> list[int]:
    """Children of this process."""
    path = Path(f"/proc/self/task/{os.getpid()}/children")
    return [int(number) for number in path.read_text(encoding="ascii").split()] if path.exists() else []
