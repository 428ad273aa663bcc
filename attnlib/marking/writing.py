"""Files and folders that are whole or not there, and that take nobody's place unasked."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


def is_there(path: Path) -> bool:
    """Whether something would be lost at a path; an empty folder would not."""
    return os.path.lexists(path) and not (path.is_dir() and not path.is_symlink() and not any(path.iterdir()))


def aside(path: Path) -> Path:
    """The first free name beside a path for what is there: `marks.old.csv`, `marks.old2.csv`, …"""
    names = (path.with_name(f"{path.stem}.old{number}{path.suffix}") for number in ("", *range(2, 1_000)))
    return next(name for name in names if not os.path.lexists(name))


@contextlib.contextmanager
def whole(path: Path, replace: bool = False) -> Iterator[Path]:
    """A place to write a file or a folder to, which gets its name when all is written.

    If writing stops, nothing is left, and what was at the path stays.

    Parameters
    ----------
    path : where it should be in the end
    replace :
        Move what is at the path aside (`aside` says where to); else it is a ValueError if something is there.
    """
    if is_there(path) and not replace:
        raise ValueError(
            f"{path} is there already and is not overwritten; try another --to, or add --replace: what is there is then "
            f"kept as {aside(path)}"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".attnlib-", dir=path.parent) as room:
        part = Path(room, path.name)
        yield part
        if is_there(path):
            path.rename(aside(path))
        elif path.is_dir():
            path.rmdir()
        part.rename(path)
