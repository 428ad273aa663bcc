"""A container image of this machine's own Python and packages, for where no registry can be reached.

`python tests/marking/image.py NAME torch scipy` makes one by hand. Everything keeps its path, but for the packages: they
go where the interpreter looks by itself, also if they came from a virtual environment.
"""

import re
import subprocess
import sys
import sysconfig
import tarfile
from importlib import metadata
from pathlib import Path

UNUSED = {"test", "idlelib", "ensurepip", "site-packages", "dist-packages"}  # folders of the standard library
LOADED = """import importlib, sys
for name in sys.argv[1:]: importlib.import_module(name)
import bz2, ctypes, hashlib, lzma, sqlite3, ssl, zlib
print(open("/proc/self/maps").read())"""


def make(name: str, packages: list[str]) -> None:
    """Make the image. Its `python3` imports these packages, and those that they require."""
    stdlib, python = Path(sysconfig.get_path("stdlib")), Path(sys.base_prefix, "bin", "python3").resolve()
    files = {python: python}
    files |= {
        path: path for path in stdlib.glob("*") if path.name not in UNUSED and not path.name.startswith("config-")
    }
    for package in required(packages):
        for file in metadata.distribution(package).files:
            if ".." not in file.parts:  # commands, in the folder bin
                files[Path(file.locate())] = stdlib / "site-packages" / file
    files |= {library: library for library in shared_libraries(packages)}
    command = ["docker", "import", "--change", f"ENV PATH={python.parent}", "-", name]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as docker:
        with tarfile.open(fileobj=docker.stdin, mode="w|", dereference=True) as tar:
            for folder in sorted({parent for target in files.values() for parent in target.parents}):
                tar.addfile(readable(folder_entry(folder)))  # Docker would make them closed to all but root
            for source, target in files.items():
                tar.add(source, str(target), filter=readable)
            loader = tarfile.TarInfo(str(python.with_name("python3")))
            loader.type, loader.linkname = tarfile.SYMTYPE, str(python)
            tar.addfile(loader)
        docker.stdin.close()
    if docker.returncode:
        raise RuntimeError(f"docker import ended with {docker.returncode}")


def required(packages: list[str]) -> list[str]:
    """These packages and all that they require, without extras."""
    found, wanted = [], list(packages)
    while wanted:
        name = wanted.pop()
        if name not in found:
            found.append(name)
            lines = [line for line in metadata.requires(name) or [] if "extra ==" not in line]
            wanted += [re.match(r"[\w.-]+", line)[0] for line in lines]
    return found


def shared_libraries(packages: list[str]) -> list[Path]:
    """The system's libraries that a process has loaded which imported these packages, under all their names."""
    command = [sys.executable, "-c", LOADED, *packages]
    maps = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = set(re.findall(r"/\S+/lib[^/\s]*\.so[^/\s]*$", maps, re.MULTILINE))
    found = {Path(path) for path in found if "-packages/" not in path}
    names = {name for folder in {path.parent for path in found} for name in folder.glob("lib*.so*")}
    return [*(name for name in names if name.resolve() in found), *Path("/").glob("lib*/ld-linux*.so*")]


def folder_entry(path: Path) -> tarfile.TarInfo:
    """An empty folder."""
    entry = tarfile.TarInfo(str(path))
    entry.type, entry.mode = tarfile.DIRTYPE, 0o755
    return entry


def readable(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Owned by root, readable by all."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    entry.mode |= 0o555 if entry.isdir() or entry.mode & 0o100 else 0o444
    return entry


if __name__ == "__main__":
    make(sys.argv[1], sys.argv[2:])
