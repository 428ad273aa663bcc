"""The commands that make something of marks: `attnlib feedback`, `attnlib report`, `attnlib lms`."""

import argparse
from pathlib import Path
from typing import Any

PAGES = {
    "feedback": ("write a page for each student", "feedback", "folder to make"),
    "report": ("write what the class has understood, for the instructor", "report.html", "page; a .csv goes beside it"),
}


def add_pages(commands: argparse._SubParsersAction) -> None:
    """`attnlib feedback` and `attnlib report`."""
    for name, (purpose, to, what) in PAGES.items():
        command = commands.add_parser(name, help=purpose, description=f"{purpose.capitalize()}.")
        command.add_argument("journal", type=Path, help="the .jsonl beside the table of marks")
        add_to(command, what, default=Path(to))
        command.set_defaults(run=run_pages)


def add_to(command: argparse.ArgumentParser, what: str, **options: Any) -> None:
    """`--to`, and what becomes of what is there."""
    command.add_argument("--to", type=Path, help=what, **options)
    command.add_argument(
        "--replace",
        action="store_true",
        help="if --to is there already, keep that beside it, as NAME.old, and write anew",
    )


def run_pages(options: argparse.Namespace) -> int:
    """Write the pages."""
    from attnlib.marking.entries import read_entries
    from attnlib.marking.feedback import write_feedback
    from attnlib.marking.report import write_report

    write = {"feedback": write_feedback, "report": write_report}[options.command]
    made = [options.to, options.to.with_suffix(".csv")] if options.command == "report" else [options.to]
    keep(options.journal, made, PAGES[options.command][1])
    entries = read_entries(options.journal)
    print(write(entries, options.to, options.replace))
    return 0


def add_lms(commands: argparse._SubParsersAction) -> None:
    """`attnlib lms`."""
    command = commands.add_parser(
        "lms",
        help="fill the export of Canvas, Moodle or Blackboard",
        description="Fill the export of Canvas, Moodle or Blackboard. Only the column of grades changes. Ends with 1 if a "
        "mark has no place in the export, or a student no mark.",
    )
    command.add_argument("export", type=Path, help="the file that the platform exported")
    command.add_argument("marks", type=Path, help="the table of `attnlib mark`")
    command.add_argument(
        "--id-column", default="", help="its column with the ids; else the one with most ids of the marks"
    )
    command.add_argument("--grade-column", default="", help="its column to fill; else guessed")
    add_to(command, "new file to import", required=True)
    command.set_defaults(run=run_lms)


def run_lms(options: argparse.Namespace) -> int:
    """Fill an export; 1 if a mark has no place in it, or someone in it has no mark."""
    from attnlib.marking.lms import fill, read_marks
    from attnlib.marking.writing import whole

    keep(options.marks, [options.to], "filled.csv")
    with whole(options.to, options.replace) as part:
        marks = read_marks(options.marks)
        done = fill(options.export.read_bytes(), marks, options.id_column, options.grade_column)
        part.write_bytes(done.data)
    print(f"{done.filled} marks in {options.to}. Taken for: {done.guessed}.")
    for warning in done.warnings:
        print(f"Note: {printable(warning)}.")
    for what, names in (
        ("in the export without marks", done.without_marks),
        ("marks without a row", done.without_row),
        ("left as the export has them", done.kept),
        ("had another grade", done.changed),
    ):
        if names:
            print(f"{len(names)} {what}: {', '.join(map(printable, names))}")
    return 1 if done.without_marks or done.without_row or done.kept else 0


def keep(marks: Path, made: list[Path], other: str) -> None:
    """ValueError if what is made would take the place of the table of marks or its journal, whatever is asked for."""
    if {marks.resolve().with_suffix(suffix) for suffix in (".csv", ".jsonl")} & {path.resolve() for path in made}:
        raise ValueError(f"--to {made[0]} would take the place of the marks; try --to {other}")


def printable(text: str) -> str:
    """A name for the terminal, without control characters."""
    return "".join(letter for letter in text if letter.isprintable())
