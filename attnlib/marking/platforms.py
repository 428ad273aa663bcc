"""What exports of Canvas, Moodle and Blackboard look like, as far as it is needed to fill their column of grades.

Canvas never translates its heads. Blackboard writes the number of a column behind | in every language. Of Moodle English
and German are known. Where nothing is known, the instructor names the column.
"""

import re
from dataclasses import dataclass

from attnlib.marking.tables import Table, only

NUMBER = r"[-+]?\d+(?:[.,]\d+)?"
POSSIBLE = "Points Possible"  # the row of Canvas that holds them


@dataclass(frozen=True)
class Platform:
    """One kind of export. The shapes are regular expressions of whole heads."""

    name: str
    shape: str = "(?!)"  # a head that only this platform has
    ids: tuple[str, ...] = ()  # heads of columns that may hold ids, the best first
    grade: str = "(?!)"  # a column of grades
    computed: str = "(?!)"  # looks like one, and is filled by the platform itself
    maximum: str = "(?!)"  # a column that holds the points possible
    example: str = ""  # of a head of a column of grades

    def grade_column(self, heads: list[str], wanted: str) -> int:
        """Index of the column to fill: the one asked for, or the only one that looks like it."""
        if wanted:
            return only(heads, wanted, "--grade-column")
        like = [h for h in heads if matches(self.grade, h) and not matches(self.computed, h)]
        if len(like) == 1:
            return only(heads, like[0], "--grade-column")
        if like:
            raise ValueError(
                f"the export ({self.name}) has {len(like)} columns of grades; say --grade-column with one of: "
                f"{', '.join(map(repr, like))}"
            )
        looked = (
            f"looked for one such as {self.example}" if self.example else "only of those it is known how grades look"
        )
        raise ValueError(
            f"the export ({self.name}) has no column that looks like grades; {looked}. Say --grade-column with one of: "
            f"{', '.join(map(repr, heads))}"
        )

    def rank(self, head: str) -> int:
        """How good a column is for ids: 0 is the best."""
        return self.ids.index(head) if head in self.ids else len(self.ids)

    def is_person(self, heads: list[str], fields: list[str]) -> bool:
        """Whether a row is a student's; Canvas has rows for the points possible and for manual posting above them."""
        ids = any(cell.strip() for head, cell in zip(heads, fields) if head in self.ids)
        return any(fields) and (
            self.name != "Canvas" or ids or fields[0].strip() not in ("", POSSIBLE, "Manual Posting")
        )

    def is_test_student(self, heads: list[str], fields: list[str]) -> bool:
        """Whether a row is the student that an instructor tries the course with."""
        if self.name == "Canvas":
            names = [cell for head, cell in zip(heads, fields) if head in ("Student", "LastName", "FirstName")]
            return ", ".join(names).casefold() in ("student, test", "test student")
        return self.name == "Blackboard" and any(cell.casefold().endswith("_previewuser") for cell in fields)

    def possible(self, table: Table, grade_at: int) -> float | None:
        """The points possible in the column of grades, where the export says it."""
        head = table.heads[grade_at]
        told = []
        for place in range(1, len(table)):
            fields = table.fields(place)
            if self.name == "Canvas" and fields[0].strip() == POSSIBLE:
                told += fields[grade_at : grade_at + 1]
            told += [cell for name, cell in zip(table.heads, fields) if matches(self.maximum, name)]
        if self.name == "Blackboard" and (found := re.search(rf"\[[^\]\d]*({NUMBER})[^\]]*\] *\| *\d+$", head)):
            told.append(found[1])
        return next((number for number in map(number_of, told) if number is not None), None)


PLATFORMS = (
    Platform(
        "Canvas",
        shape="SIS Login ID|SIS User ID",
        ids=("SIS Login ID", "SIS User ID", "ID", "Integration ID"),
        grade=r".+ \(\d+\)",
        computed=r".*\b(current|final|override) (score|points|grade)( \(.*\))?",
        example="'ps1 (12345)'",
    ),
    Platform(
        "Blackboard",
        shape=r".+\| *\d+",
        ids=("Username", "Student ID"),
        grade=r".+\| *\d+",
        computed=r"(weighted |running )?total *(\[.*)?\|.*|.*\[[^\]]*\b(up to|text)\b[^\]]*\] *\|.*",
        example="'ps1 [Total Pts: 8 Score] |12345'",
    ),
    Platform(
        "Moodle",
        shape="Email address|Identifier|E-Mail-Adresse",
        ids=("Email address", "E-Mail-Adresse", "ID number", "ID-Nummer", "Username", "Identifier", "ID"),
        grade=r"grade|bewertung|.+\((real|punkte)\)|(assignment|aufgabe): .+",
        computed=r".*\btotal( \(.*\))?|kurs gesamt.*|.*\((percentage|prozentsatz|letter|feedback)\)",
        maximum="maximum grade|bestwertung",
        example="'Grade', or 'Assignment: ps1 (Real)'",
    ),
)


def platform_of(heads: list[str]) -> Platform:
    """The platform that an export comes from, by its heads."""
    known = (platform for platform in PLATFORMS if any(matches(platform.shape, head) for head in heads))
    if heads[:2] == ["Student", "ID"]:  # Canvas without ids of a student information system
        return PLATFORMS[0]
    return next(known, Platform("none of " + ", ".join(platform.name for platform in PLATFORMS)))


def matches(shape: str, head: str) -> bool:
    """Whether a whole head has a shape."""
    return re.fullmatch(shape, head.strip(), re.IGNORECASE) is not None


def number_of(cell: str) -> float | None:
    """The number in a cell, with a decimal point or comma; None if it is no number."""
    return float(cell.strip().replace(",", ".")) if re.fullmatch(NUMBER, cell.strip()) else None


def has_decimal_commas(table: Table) -> bool:
    """Whether an export writes 7,5: by its numbers, or by its separator if it has none with a fraction."""
    cells = [cell for place in range(1, len(table)) for cell in table.fields(place)]
    commas, points = (sum(bool(re.fullmatch(rf"\d+{mark}\d+", cell)) for cell in cells) for mark in (",", r"\."))
    return commas > points or (commas == points and table.separator == ";")
