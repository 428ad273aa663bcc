"""The command `attnlib`, for instructors."""

import argparse
import secrets
import sys
from pathlib import Path

from attnlib import __version__
from attnlib.marking.outputs import add_lms, add_pages, printable


def parser() -> argparse.ArgumentParser:
    """All commands with their options."""
    top = argparse.ArgumentParser(prog="attnlib", description="Tools for instructors of the course on attention.")
    top.add_argument("--version", action="version", version=__version__)
    commands = top.add_subparsers(dest="command", required=True)
    add_assign(commands)
    add_mark(commands)
    add_pages(commands)
    add_lms(commands)
    return top


def add_assign(commands: argparse._SubParsersAction) -> None:
    """`attnlib assign`."""
    assign = commands.add_parser(
        "assign",
        help="write an assignment from exercises of lessons",
        description="Write an assignment: a notebook with the chosen exercises, each with its text,\nstub, check and hints, "
        "and an nbgrader course folder around it. Run it in a checkout of\nthe course.",
        epilog=ASSIGN_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    assign.add_argument("lessons", nargs="+", metavar="LESSON", help="two digits, such as 02")
    assign.add_argument(
        "--exercises",
        default="",
        help="such as softmax,causal_mask; all of the lessons if left out; 11-train_step if two have it",
    )
    assign.add_argument(
        "--points", default="", help="points that differ from the lesson's, such as softmax=3,causal_mask=1"
    )
    assign.add_argument(
        "--question",
        action="append",
        default=[],
        help="a question that you mark by hand, in nbgrader; several for several",
    )
    assign.add_argument(
        "--question-points",
        action="append",
        default=[],
        type=float,
        help="points of the questions, in order; 1 if left out",
    )
    assign.add_argument("--name", default="", help="of the assignment, such as ps1; the folder's name if left out")
    assign.add_argument("--to", type=Path, required=True, help="folder to make; one that exists is never overwritten")
    assign.set_defaults(run=run_assign)


ASSIGN_EXAMPLE = """\
example:
  attnlib assign 02 04 --exercises softmax,causal_mask --points softmax=3 \\
      --question "Why is the maximum subtracted?" --question-points 2 --to ps1/

what it writes:
  ps1/ps1.ipynb              for students, if you do without nbgrader. Then mark with
                               attnlib mark SUBMISSIONS/ --assignment ps1/ps1.ipynb --to marks.csv
  ps1/source/ps1/ps1.ipynb   the same with nbgrader's metadata
  ps1/nbgrader_config.py     settings: marks come from attnlib's sandbox

with nbgrader (pip install "attnlib[marking]"), all in the folder ps1:
  nbgrader generate_assignment ps1     makes release/ps1/ps1.ipynb, which students get
  (put what they hand in at submitted/STUDENT/ps1/ps1.ipynb)
  nbgrader autograde ps1               marks; a verdict stands under each check. It ends with an error
                                       if some could not be read: they are named, the others are marked
  jupyter lab                          (menu Nbgrader, Formgrader) questions are marked by hand
  nbgrader generate_feedback ps1       feedback/STUDENT/ps1/ps1.html
  nbgrader export --to grades.csv

Both notebooks hold exercises without solutions. You may edit their text; keep the cells with check(...) as they are."""


def run_assign(options: argparse.Namespace) -> int:
    """Write the folder, and say what is in it."""
    from attnlib.marking.assign import Question, chosen, write

    if len(options.question_points) > len(options.question):
        raise ValueError("there are more --question-points than --question; give a --question for each")
    names = [name.strip() for name in options.exercises.split(",") if name.strip()]
    name = options.name or options.to.resolve().name
    assignment = chosen(options.lessons, names, read_points(options.points), name)
    points = [*options.question_points, *[1.0] * len(options.question)]
    questions = [Question(text, worth) for text, worth in zip(options.question, points)]
    for path in write(assignment, options.to, questions):
        print(path)
    asked = ", ".join(f"{task.name} ({task.points:g})" for task in assignment.tasks)
    print(f"asked for, with points: {asked}. What to do next: attnlib assign --help")
    return 0


def add_mark(commands: argparse._SubParsersAction) -> None:
    """`attnlib mark`."""
    mark = commands.add_parser(
        "mark",
        help="mark submissions in a sandbox",
        description="Mark notebooks. Students' code runs in a sandbox, on inputs drawn anew, and only arrays come back. Of "
        "the cells, imports, definitions, assignments, and blocks and loops of these are run where an answer needs them; a "
        "call alone, such as table.append(x), is not. A run that was stopped goes on where it was. Needs Linux.",
    )
    mark.add_argument("submissions", type=Path, help="folder with a notebook, or a folder, for each student")
    mark.add_argument("--lesson", action="append", default=[], help="lesson whose exercises are asked for, such as 02")
    mark.add_argument("--assignment", type=Path, help="the assignment's notebook, or a JSON file, in place of --lesson")
    mark.add_argument("--points", default="", help="points that differ, such as softmax=3,causal_mask=1")
    mark.add_argument(
        "--to", type=Path, default=Path("marks.csv"), help="table to write; results go to a .jsonl beside it"
    )
    mark.add_argument("--jobs", type=int, default=1, help="processes")
    mark.add_argument("--backend", default="loky", help="of joblib: loky; dask or ray for an existing cluster")
    mark.add_argument("--cluster", default="", help="address of the cluster, such as tcp://host:8786")
    mark.add_argument(
        "--image",
        default="",
        help="mark in containers of this image, with Python, NumPy and PyTorch: for where namespaces fail",
    )
    mark.add_argument("--unsafe", action="store_true", help="no sandbox: a process alone. Every report will say so")
    mark.add_argument("--again", action="store_true", help="mark everything again, whatever the journal holds")
    mark.add_argument("--quiet", action="store_true", help="no progress bar")
    mark.set_defaults(run=run_mark)


def run_mark(options: argparse.Namespace) -> int:
    """Mark a folder; 0 when every submission has its line, however broken it is."""
    from attnlib.marking.assignment import Assignment
    from attnlib.marking.serving import choose

    if bool(options.lesson) == bool(options.assignment):
        raise ValueError("say what is asked for: either --lesson 02 (several times for several) or --assignment FILE")
    points = read_points(options.points)
    if options.assignment:
        assignment = Assignment.from_file(options.assignment, points)
    else:
        assignment = Assignment.of_lessons(options.lesson, points)
    if unknown := set(points) - {task.name for task in assignment.tasks}:
        raise ValueError(f"--points names {', '.join(sorted(unknown))}, which is not asked for")
    sandbox = choose(options.unsafe, options.image)
    from attnlib.marking.batch import mark_all
    from attnlib.marking.results import write_marks
    from attnlib.marking.submissions import find
    from attnlib.marking.writing import aside

    names = [task.name for task in assignment.tasks]
    like = options.assignment.name if options.assignment else ""
    submissions = find(options.submissions, names, like)
    if not submissions:
        raise ValueError(f"no notebook in {options.submissions}: expected files that end in .ipynb, or a folder each")
    journal = options.to.with_suffix(".jsonl")
    if options.again and journal.exists():
        journal.rename(aside(journal))
    entries = mark_all(
        submissions,
        assignment,
        sandbox,
        journal,
        secrets.randbits(128),
        jobs=options.jobs,
        backend=options.backend,
        cluster=options.cluster,
        progress=not options.quiet,
    )
    write_marks(entries, assignment, options.to)
    print(summary(entries, options.to))
    return 0


def read_points(text: str) -> dict[str, float]:
    """`softmax=3,causal_mask=1` as a dict."""
    try:
        pairs = [part.split("=") for part in text.split(",") if part]
        return {name.strip(): float(worth) for name, worth in pairs}
    except ValueError:
        raise ValueError(f"--points {text} cannot be read; expected pairs such as softmax=3,causal_mask=1") from None


def summary(entries: list[dict], path: Path) -> str:
    """What the command prints at the end."""
    errors = [entry for entry in entries if entry["error"]]
    full = sum(entry["points"] == entry["of"] for entry in entries)
    lines = [f"{len(entries)} submissions, {full} with all points, {len(errors)} that could not be marked: {path}"]
    lines += [printable(f"  {entry['id']}: {entry['error']}") for entry in errors[:20]]
    label = entries[0]["sandbox"]
    if label.startswith("UNSAFE"):
        label += ". Students' code could read the solutions and change files; these marks prove little"
    return "\n".join([*lines, label + "."])


def main(arguments: list[str] | None = None) -> int:
    """Run a command; errors that an instructor can mend are one paragraph, without a traceback."""
    options = parser().parse_args(arguments)
    try:
        return options.run(options)
    except (ValueError, RuntimeError, OSError) as error:
        print(f"attnlib {options.command}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        after = "goes on where it was" if options.command == "mark" else "begins anew; nothing was written"
        print(f"\nStopped. The same command {after}.", file=sys.stderr)
        return 130
