"""Messages on a pipe, and modules made of sources: what all processes in the sandbox share. Standard library only."""

import os
import struct
import sys
import types


def read_frame(descriptor: int, most: int = 2**31) -> tuple[bytes, bytes] | None:
    """One message: its kind, a byte, and its bytes; nothing at the end of the stream."""
    head = read_exactly(descriptor, 5)
    if head is None:
        return None
    length = struct.unpack("<I", head[1:])[0]
    if length > most:
        raise ValueError("a message that is too long")
    data = read_exactly(descriptor, length)
    return None if data is None else (head[:1], data)


def read_exactly(descriptor: int, length: int) -> bytes | None:
    """So many bytes, or nothing if the stream ends before."""
    parts = []
    while length:
        part = os.read(descriptor, min(length, 2**20))
        if not part:
            return None
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def write_frame(descriptor: int, kind: bytes, data: bytes) -> None:
    """Send one message."""
    rest = memoryview(kind + struct.pack("<I", len(data)) + data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def make_module(name: str, source: str) -> None:
    """A module of this name from source, as an attribute of its package too; added to it if it is there already."""
    package, _, last = name.rpartition(".")
    if package and package not in sys.modules:
        make_module(package, "")
    if name not in sys.modules:
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = []
        if package:
            setattr(sys.modules[package], last, sys.modules[name])
    exec(compile(source, f"<{name}>", "exec", dont_inherit=True), vars(sys.modules[name]))
