"""Nobody gets marks for a wrong answer by a trick: each was tried for real, as this user and as an ordinary one."""

import os
import runpy
import shutil
import subprocess
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMES = runpy.run_path(str(Path(__file__).with_name("tricks.py")))
TRICKS, WRONG, inside = NAMES["TRICKS"], NAMES["WRONG"], NAMES["inside"]


@pytest.mark.parametrize("number", TRICKS)
def test_a_trick_gives_no_marks(mark, number):
    for cell in TRICKS[number]:
        statuses = mark(WRONG, cell)
        assert "right" not in statuses.values(), (cell, statuses)
        assert set(statuses.values()) <= {"not yet", "missing"}, (cell, statuses)


def test_the_next_student_is_marked_as_if_nothing_had_been_tried(mark, marker):
    from attnlib.marking.marker import right_cells

    for name in (2, 19, 21, 24, 27):
        mark(WRONG, *TRICKS[name])
    assert set(mark(*right_cells(marker.assignment)).values()) == {"right"}


def test_thirty_copying_and_library_calls_get_marks_and_are_named(marker):
    pytest.importorskip("scipy")
    cell = "from scipy import special\ndef softmax(scores):\n    return special.softmax(scores, axis=-1)"
    marks, _ = marker.mark([WRONG, cell])
    assert marks[0].status == "right" and marks[0].libraries == ["scipy.special.softmax"]


def probe(marker, body):
    """What the sandbox lets a student's function find out: the string that it raises."""
    marks, _ = marker.mark(["import numpy as np", inside(body)])
    return marks[0].text


def test_what_a_student_can_see_and_touch(marker):
    body = """
    import os
    seen = []
    for top in ("/", "/root", "/home", "/tmp", "/usr", "/etc", "/proc", "/student", "/var", "/opt", "/mnt"):
        if os.path.isdir(top): seen.append(top + ":" + ",".join(sorted(os.listdir(top))[:40]))
    for path in ("/x", "/usr/lib/x", "/etc/x", "/proc/x"):
        try: open(path, "w"); seen.append("WROTE " + path)
        except OSError: pass
    for pid in range(2, 400):
        try: os.kill(pid, 0); seen.append("PROCESS %d" % pid)
        except OSError: pass
    raise ValueError(" ".join(seen)[:1900])
    """
    text = probe(marker, textwrap.dedent(body))
    assert "WROTE" not in text and "PROCESS" not in text and "/home" not in text, text
    for name in ("passwd", "ipynb", "attnlib", "var:", "mnt:"):
        assert name not in text, text


@pytest.mark.parametrize(
    "body, said",
    [
        ("import socket\nsocket.create_connection(('127.0.0.1', 80), 1)", "OSError"),
        ("import socket\nsocket.create_connection(('1.1.1.1', 53), 1)", "OSError"),
        ("from attnlib.numpy import softmax", "Error: "),
        ("import attnlib.exercises.core", "ModuleNotFoundError"),
        ("import attnlib.plots", "ModuleNotFoundError"),
        ("import os\nos.setuid(0)", "PermissionError"),
        ("import os\nos.chroot('/')", "PermissionError"),
        ("open('big', 'wb').write(b'0' * 10**8)", "OSError"),
        ("import os\nopen('/proc/1/environ').read()", "FileNotFoundError"),
        ("import os\nos.execv('/bin/sh', ['sh', '-c', 'true'])", "FileNotFoundError"),
        ("import subprocess\nsubprocess.run(['/bin/sh', '-c', 'true'])", "PermissionError"),
        ("x = np.ones(10**10)", "MemoryError"),
    ],
)
def test_walls(marker, body, said):
    text = probe(marker, body)
    assert said in text, text


def test_an_installed_copy_of_the_solutions_is_hidden_or_stops_the_run(sandbox, tmp_path, monkeypatch):
    from attnlib.marking import sandbox as made
    from attnlib.marking.assignment import Assignment
    from attnlib.marking.marker import Marker
    from attnlib.marking.sandbox import NoSandbox

    if sandbox.mode != "unshare":
        pytest.skip("a container has what its image has")
    tmp_path.chmod(0o755)
    shutil.copytree(ROOT / "attnlib", tmp_path / "attnlib")
    folders = made.library_folders()
    monkeypatch.setattr(made, "library_folders", lambda: [*folders, str(tmp_path)])
    body = """
    import sys
    for name in [name for name in sys.modules if name.startswith("attnlib")]: del sys.modules[name]
    try:
        import attnlib.numpy
    except ImportError:
        raise ValueError("hidden: " + str("attnlib" in __import__("os").listdir(sys.path[-1])))
    """
    with Marker(Assignment.of_lessons(["00"]), sandbox) as marker:
        marks, _ = marker.mark([inside(textwrap.dedent(body), "total", "values")])
        assert "hidden: True" in marks[0].text, marks[0].text
    monkeypatch.setattr(made, "hidden_folders", lambda path: [])
    with pytest.raises(NoSandbox, match="the solutions can be imported there"):
        Marker(Assignment.of_lessons(["00"]), sandbox).__enter__()


def test_memory_of_another_student_is_not_inherited(marker):
    """What one student's process was sent is nowhere in the next one's memory."""
    secret = "the_secret_" + os.urandom(8).hex()
    marker.mark([WRONG, f"{secret} = 1\ndef softmax(scores):\n    return {secret}"])
    body = f"""
    import gc
    halves = {secret[:14]!r}, {secret[14:]!r}
    found = [t for t in gc.get_objects() if isinstance(t, dict) and "".join(halves) in t]
    raise ValueError("FOUND" if found else "nothing there")
    """
    assert "nothing there" in probe(marker, textwrap.dedent(body))


FORGED = """
from attnlib.marking.inside import student
student.Student.do_run = lambda self, **step: REPLY
"""
REPLIES = [
    "None",
    "{}",
    "dict(exists=True)",
    "[1]",
    "'right'",
    "dict(exists=True, outcomes=[[b'', b'', None, None, '']] * 12)",
]
WHOLE = "dict(exists=True, callable=True, busy=False, type='f', problems=[], parameters=[3], outcomes={}) | {{'class': False}}"
REPLIES += [
    WHOLE.format(outcomes)
    for outcomes in ("[]", "[1] * 12", "[[b'', b'', None, None, '']] * 12", "[[1, 2, 3, 4, 5]] * 12")
]
REPLIES += [WHOLE.format("[[b'x', b'y', ['exec', 'builtins', ['1/0'], 3], 4, 5]] * 12")]


@pytest.mark.parametrize("reply", REPLIES)
def test_a_forged_reply_is_a_wrong_answer(mark, reply):
    forged = "def trick():\n" + "\n".join("    " + line for line in FORGED.replace("REPLY", reply).strip().splitlines())
    forged += "\n    return 1\nscale = trick()\ndef softmax(scores):\n    return scores * scale"
    assert "right" not in mark(WRONG, forged).values()


def test_a_forged_verdict_does_not_fill_the_disk(marker):
    lines = "[[x, x, ['ValueError', 'm', ['a'], 'a'], 'y' * 200_000, '']] * len(step['cases'])"
    reply = WHOLE.format(f"(lambda x: {lines})(b'\\x05\\x00\\x00\\x00[\"t\"]')")
    forged = (
        "def trick():\n" + textwrap.indent(FORGED.replace("REPLY", reply), "    ") + "\n    return 1\nscale = trick()"
    )
    mark = marker.mark([WRONG, forged, "def softmax(scores):\n    return scores * scale"])[0][0]
    assert "It raises ValueError: a" in mark.text and len(mark.text) == 10_000


def test_nothing_outlives_its_submission(marker):
    before = processes()
    marker.mark(
        [
            WRONG,
            inside(
                "import os, time\nfor _ in range(5):\n    if os.fork() == 0:\n        os.setsid(); time.sleep(60); os._exit(0)"
            ),
        ]
    )
    marker.mark([WRONG])
    assert len(processes()) <= len(before) + 2


def processes():
    """Processes of the marker and below."""
    out = subprocess.run(["ps", "-eo", "pid,ppid"], capture_output=True, text=True, check=True).stdout
    pairs = [tuple(map(int, line.split())) for line in out.splitlines()[1:]]
    found, new = {os.getpid()}, True
    while new:
        new = {pid for pid, parent in pairs if parent in found} - found
        found |= new
    return found
