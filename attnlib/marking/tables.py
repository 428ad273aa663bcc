"""Tables of others: read whatever encoding and separator they have, and written again with all else byte for byte."""

import codecs
import re
from dataclasses import dataclass

WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")  # how .xlsx and the old .xls begin
FORM = "save it as “CSV UTF-8” in Excel, or as CSV in UTF-8 in LibreOffice"


def decode(data: bytes, what: str) -> tuple[str, str, bytes]:
    """Text, encoding and byte order mark of a file; `what` names it in errors."""
    if data.startswith(WORKBOOKS):
        raise ValueError(f"{what} is an Excel workbook; expected text with commas, semicolons or tabs. Try: {FORM}")
    for mark, name in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (b"", without_mark(data)),
    ):
        if data.startswith(mark):
            try:
                return data[len(mark) :].decode(name), name, mark
            except UnicodeDecodeError:
                break
    raise ValueError(f"{what} is neither UTF-8 nor UTF-16; export it again, or {FORM}")


def without_mark(data: bytes) -> str:
    """The encoding of a file without a byte order mark: separators and quotes of UTF-16 have one byte that is 0."""
    if b"\0" not in data:
        return "utf-8"
    return "utf-16-le" if data[1::2].count(0) > data[::2].count(0) else "utf-16-be"


def rows_of(text: str, separator: str, what: str) -> list[list[str]]:
    """Records as lists of raw pieces: field, separator, field, ..., line end. Joined they are the text again."""
    rows, row, place = [], [], 0
    field = re.compile(rf'"(?:[^"]|"")*"|[^{separator}\r\n]*')
    after = re.compile(rf"{separator}|\r\n|\r|\n|$")
    while place < len(text):
        found = field.match(text, place)
        end = after.match(text, found.end())
        if not end:
            raise ValueError(f"record {len(rows) + 1} of {what} has text after a closing quote; export it again")
        row += [found[0], end[0]]
        place = end.end()
        if end[0] != separator:
            rows.append(row)
            row = []
    return rows + ([[*row, "", ""]] if row else [])


def plain(raw: str) -> str:
    """A field without its quotes."""
    return raw[1:-1].replace('""', '"') if raw.startswith('"') else raw


@dataclass
class Table:
    """A table in pieces that can be put together again."""

    encoding: str
    mark: bytes
    separator: str
    pieces: list[list[str]]

    @classmethod
    def read(cls, data: bytes, what: str) -> "Table":
        """From the bytes of a file."""
        text, encoding, mark = decode(data, what)
        if not text.strip():
            raise ValueError(f"{what} is empty; expected a table with a line of heads")
        first = re.sub(r'"[^"]*"', "", re.split(r"[\r\n]", text, maxsplit=1)[0])
        separator = max("\t,;", key=first.count)
        return cls(encoding, mark, separator, rows_of(text, separator, what))

    @property
    def heads(self) -> list[str]:
        """The names of the columns."""
        return self.fields(0)

    def __len__(self) -> int:
        return len(self.pieces)

    def fields(self, place: int) -> list[str]:
        """The fields of a row; row 0 is the head."""
        return [plain(raw) for raw in self.pieces[place][::2]]

    def rows(self) -> list[dict[str, str]]:
        """The rows by head, without empty ones; of a row that is too short, the fields that it has."""
        rows = [self.fields(place) for place in range(1, len(self))]
        return [dict(zip(self.heads, fields)) for fields in rows if any(fields)]

    def put(self, place: int, column: int, value: str) -> None:
        """Change a cell; it is quoted if it was, or if it has to be."""
        row = self.pieces[place]
        quote = '"' if row[2 * column].startswith('"') or self.separator in value else ""
        row[2 * column] = quote + value + quote

    @property
    def data(self) -> bytes:
        """The bytes of the file."""
        return self.mark + "".join(piece for row in self.pieces for piece in row).encode(self.encoding)


def only(heads: list[str], name: str, option: str) -> int:
    """Index of the only column with this name; `option` is what says the name."""
    if heads.count(name) != 1:
        how = "is no column" if name not in heads else "is more than one column"
        raise ValueError(f"{name!r} {how} of the export; try {option} with one of: {', '.join(map(repr, heads))}")
    return heads.index(name)
