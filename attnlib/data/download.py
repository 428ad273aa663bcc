"""Fetching one file: it goes on where it was broken off, and has its name only when it is whole."""

import hashlib
import http.client
import urllib.error
import urllib.request
from pathlib import Path


def fetch(url: str, path: str | Path, md5: str, *, block: int = 1 << 20, timeout: float = 30.0) -> Path:
    """Get a file from a url, unless it is there.

    Parameters
    ----------
    url : str
        Beginning with http:// or https://.
    path : path
        Where it should be. Until it is whole and its checksum is right it is called ``path`` with ``.part`` behind.
    md5 : str
        Its checksum, in hexadecimal digits.
    block : int
        Bytes that are written at a time.
    timeout : float
        Seconds without an answer after which it gives up.

    Returns
    -------
    path : Path

    Raises
    ------
    OSError
        If the server cannot be reached or breaks off. What has come stays in the part; call again to go on.
    ValueError
        If what came has another checksum. It is deleted, since no part of it can be trusted.
    """
    path = Path(path)
    if path.exists():
        if not has_checksum(path, md5):
            raise ValueError(f"{path.name} is there, with another md5 checksum than {md5}. Try to delete it.")
        return path
    if not url.startswith(("http://", "https://")):
        raise ValueError(
            f"url={url!r}; expected one that begins with https://. For a file on this machine, give its path."
        )
    part = path.with_name(path.name + ".part")
    part.parent.mkdir(parents=True, exist_ok=True)
    if not (part.exists() and has_checksum(part, md5)):  # it may have been stopped between the last block and the name
        _append(url, part, block, timeout)
    if not has_checksum(part, md5):
        part.unlink()
        raise ValueError(
            f"what came for {path.name} has another md5 checksum than {md5}; it was deleted. Try again, or another url."
        )
    Path(part).replace(path)
    return path


def has_checksum(path: str | Path, md5: str) -> bool:
    """Whether a file has this md5 checksum."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest() == md5.lower()


def _append(url: str, part: Path, block: int, timeout: float) -> None:
    """Add to the part what is missing. A server that cannot begin in the middle sends all of it anew."""
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        answer = urllib.request.urlopen(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        if error.code == 416 and have:  # nothing follows: it is whole already, or longer than the file of this url
            return
        raise OSError(f"the server answered {error.code} {error.reason} to {url}") from error
    with answer, part.open("ab" if answer.status == 206 else "wb") as file:
        expected = answer.headers.get("Content-Length")
        came = 0
        try:
            while data := answer.read(block):
                file.write(data)
                came += len(data)
        except http.client.IncompleteRead as error:  # of a file that comes in pieces of unknown number
            file.write(error.partial)
            raise OSError(f"broken off after {came + len(error.partial)} bytes; call again to go on.") from error
    if expected is not None and came < int(expected):
        raise OSError(f"broken off after {came} of {expected} bytes; call again to go on.")
