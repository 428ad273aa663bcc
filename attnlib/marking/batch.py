"""Marking a folder: resumable, with progress, on one machine or on a cluster."""

import atexit
import contextlib
import hashlib
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import joblib
from tqdm import tqdm

from attnlib import __version__
from attnlib.marking.assignment import Assignment
from attnlib.marking.marker import Marker
from attnlib.marking.results import Journal
from attnlib.marking.sandbox import NoSandbox, Sandbox
from attnlib.marking.serving import ServerDied
from attnlib.marking.submissions import NotANotebook, Submission, code_cells

PART = 200  # submissions after which results are written, where they cannot be written one by one
MARKERS: dict[tuple, Marker] = {}  # of this process, so that a server and the mistakes serve many submissions


def marker_of(assignment: Assignment, sandbox: Sandbox, seed: int) -> Marker:
    """The marker of this process for a run."""
    key = assignment.digest, sandbox, seed
    if key not in MARKERS:
        close_markers()
        MARKERS[key] = Marker(assignment, sandbox, seed).__enter__()
    return MARKERS[key]


@atexit.register
def close_markers() -> None:
    """End the servers that this process started."""
    while MARKERS:
        MARKERS.popitem()[1].__exit__()


def mark_one(assignment: Assignment, sandbox: Sandbox, seed: int, start: dict, data: bytes | str) -> dict:
    """One line of the journal. Never raises because of a submission; NoSandbox if it is the sandbox that fails.

    Parameters
    ----------
    assignment, sandbox, seed : of the run
    start : what the line begins with
    data :
        The file's bytes; a string says why there are none.
    """
    began = time.perf_counter()
    entry = start | {"error": "", "points": 0.0, "of": sum(task.points for task in assignment.tasks)}
    entry |= {"exercises": [], "code": {}, "seconds": 0.0}
    marker = marker_of(assignment, sandbox, seed)
    try:
        if isinstance(data, str):
            raise NotANotebook(data)
        marks, about = marker.mark(code_cells(data))
        entry["exercises"] = [mark.as_dict() for mark in marks]
        entry["points"] = sum(mark.points for mark in marks)
        answers = about.get("answers", {})
        entry["code"] = {name: {key: answers[name][key] for key in ("shape", "text", "size")} for name in answers}
    except NotANotebook as error:
        entry["error"] = str(error)
    except ServerDied as error:
        marker.prove()  # if it still works, it was the submission
        entry["error"] = f"it ended the marker's server twice ({error}): please look at it by hand"
    except NoSandbox:
        raise
    except Exception as error:
        entry["error"] = f"it could not be marked ({type(error).__name__}: {error}): please look at it by hand"
    entry["seconds"] = round(time.perf_counter() - began, 3)
    return entry


def mark_all(
    submissions: list[Submission],
    assignment: Assignment,
    sandbox: Sandbox,
    journal: Path,
    seed: int,
    *,
    jobs: int = 1,
    backend: str = "loky",
    cluster: str = "",
    progress: bool = True,
) -> list[dict]:
    """Mark what the journal does not hold yet, and return the lines of all submissions in their order.

    Each line is written as soon as it is there, so a run that was stopped goes on where it was. A line counts for the same
    bytes, assignment, version and kind of sandbox only.
    """
    digest, label = assignment.digest, sandbox.label
    with Journal(journal) as book:
        wanted, lines = [], {}
        for submission in submissions:
            try:
                seen = submission.read()
            except (NotANotebook, OSError) as error:
                seen = str(error)
            start = {"id": submission.id, "file": submission.path.name if submission.path else ""}
            start |= {"hash": hashlib.sha256(seen if isinstance(seen, bytes) else seen.encode()).hexdigest()}
            start |= {"assignment": assignment.name, "digest": digest, "version": __version__, "sandbox": label}
            start |= {"note": submission.note}
            key = Journal.key(start)
            if key in book.lines:
                lines[submission.id] = book.lines[key]
            else:
                wanted.append((start, submission))
        tasks = ((start, content(submission)) for start, submission in wanted)
        bar = tqdm(
            total=len(submissions),
            initial=len(lines),
            desc="marking",
            unit=" notebooks",
            disable=None if progress else True,
        )
        with bar, contextlib.closing(results(tasks, assignment, sandbox, seed, jobs, backend, cluster)) as done:
            for entry in done:
                book.append(entry)
                lines[entry["id"]] = entry
                bar.update()
    return [lines[submission.id] for submission in submissions]


def content(submission: Submission) -> bytes | str:
    """The bytes of a submission, or why there are none."""
    try:
        return submission.read()
    except (NotANotebook, OSError) as error:
        return str(error)


def results(
    tasks: Iterator[tuple[dict, bytes | str]],
    assignment: Assignment,
    sandbox: Sandbox,
    seed: int,
    jobs: int,
    backend: str,
    cluster: str,
) -> Iterator[dict]:
    """Lines of the journal as they get done, in any order."""
    if jobs == 1 and backend == "loky":
        for start, data in tasks:
            yield mark_one(assignment, sandbox, seed, start, data)
        close_markers()
        return
    with at_cluster(backend, cluster), joblib.parallel_config(backend=backend, n_jobs=jobs):
        calls = (joblib.delayed(mark_one)(assignment, sandbox, seed, *task) for task in tasks)
        if joblib.parallel.get_active_backend()[0].supports_return_generator:
            yield from joblib.Parallel(return_as="generator_unordered")(calls)
            return
        with joblib.Parallel() as parallel:  # Ray's backend hands results over when all are there
            while part := list(islice(calls, PART)):
                yield from parallel(part)


@contextlib.contextmanager
def at_cluster(backend: str, address: str) -> Iterator[Any]:
    """Connect to an existing cluster, for the backends that need it."""
    if backend == "dask":
        from distributed import Client

        with Client(address or None) as client:
            yield client
        return
    if backend == "ray":
        import ray
        from ray.util.joblib import register_ray

        ray.init(address=address or "auto")
        register_ray()
    yield None
