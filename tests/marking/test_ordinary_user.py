"""An ordinary user marks as root does; where ordinary users get no namespaces, nobody is marked, and the way out is said."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NEEDS_ROOT = "to become an ordinary user one has to be root; these tests already run as an ordinary user"
pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="marking needs Linux"),
    pytest.mark.skipif(sys.platform == "linux" and os.geteuid() != 0, reason=NEEDS_ROOT),
    pytest.mark.skipif(not shutil.which("unshare"), reason="util-linux is not installed"),
]

BECOME = """
import os
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
"""
WITHOUT_NAMESPACES = """
import ctypes, os, sys
ready, mapped = os.pipe(), os.pipe()
child = os.fork()
if child:  # in namespaces of users of its own, the setting holds for this test alone
    os.read(ready[0], 1)
    for kind in ("uid_map", "gid_map"):
        open(f"/proc/{child}/{kind}", "w").write("0 0 65536")
    os.write(mapped[1], b"x")
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
assert ctypes.CDLL(None).unshare(0x10000000) == 0
os.write(ready[1], b"x")
os.read(mapped[0], 1)
open("/proc/sys/user/max_user_namespaces", "w").write("0")
"""
TRICKS = """
import sys
sys.path.insert(0, {tests!r})
from attnlib.marking.assignment import Assignment
from attnlib.marking.marker import Marker, right_cells
from attnlib.marking.sandbox import Sandbox
from test_calls import REACHES, told
from tricks import TRICKS, WRONG
assert os.geteuid() == 65534
with Marker(Assignment.of_lessons(["02"]), Sandbox("unshare", seconds=2, wall=15)) as marker:
    for number, cells in TRICKS.items():
        for cell in cells:
            marks, _ = marker.mark([WRONG, cell])
            assert not any(mark.points for mark in marks), number
    for what, body in REACHES.items():
        assert "It raises ValueError: refused" in told(marker, body), what
    assert all(mark.points for mark in marker.mark(right_cells(marker.assignment))[0])
print("all tricks as user", os.geteuid())
"""
CLASS = """
import json
from pathlib import Path
from attnlib.marking import sample, serving
from attnlib.marking.cli import main
choose = serving.choose
serving.choose = lambda unsafe, image: choose(unsafe, image, seconds=2, wall=15)
folder = Path({folder!r})
sample.write(folder / "in")
assert main(["mark", str(folder / "in"), "--lesson", "02", "--to", str(folder / "m.csv"), "--quiet"]) == 0
for line in (folder / "m.jsonl").read_text(encoding="utf-8").splitlines():
    line = json.loads(line)
    (student,) = [student for student in sample.STUDENTS if student.id == line["id"]]
    assert {{mark["name"] for mark in line["exercises"] if mark["points"]}} == set(student.right), line
print("class marked as user", os.geteuid())
"""


@pytest.fixture
def ordinary(tmp_path):
    """Runs a script as an ordinary user, to whom root's own folders are shown in a mount namespace of this test's own."""
    places = {path for path in (sys.base_prefix, sys.prefix, str(ROOT)) if closed(path)}
    steps = []
    for number, path in enumerate(places):
        steps += [f"mkdir -p {tmp_path}/{number}", f"mount --bind '{path}' {tmp_path}/{number}"]
    steps += [f"mount -t tmpfs -o mode=755 none '{folder}'" for folder in {closed(path) for path in places}]
    for number, path in enumerate(places):
        steps += [f"mkdir -p '{path}'", f"mount --move {tmp_path}/{number} '{path}'"]
    for folder in (tmp_path, *tmp_path.parents):
        if not folder.stat().st_mode & 1:  # pytest's own folders, of which there is one more with several workers
            folder.chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()
    os.chown(work, 65534, 65534)

    def run(script):
        file = tmp_path / "ordinary.py"
        file.write_text(script, encoding="utf-8")
        environment = f"PYTHONPATH='{ROOT}' TMPDIR=/var/tmp PYTHONDONTWRITEBYTECODE=1"
        steps.append(f"cd / && {environment} exec '{sys.executable}' {file}")
        done = subprocess.run(["unshare", "--mount", "sh", "-ec", "\n".join(steps)], capture_output=True, text=True)
        if "unshare: Operation not permitted" in done.stderr:
            pytest.skip(f"ordinary users may not make namespaces here: {done.stderr.strip().splitlines()[-1]}")
        return done

    run.folder = work
    return run


def closed(path):
    """The outermost folder on the way to a path that only its owner may enter."""
    return str(next((part for part in reversed(Path(path).parents) if not part.stat().st_mode & 1), ""))


def test_no_trick_gives_marks(sandbox, ordinary):
    done = ordinary(BECOME + TRICKS.format(tests=str(ROOT / "tests" / "marking")))
    assert "all tricks as user 65534" in done.stdout, done.stderr[-3000:]


def test_the_sample_class_gets_what_is_due(sandbox, ordinary):
    pytest.importorskip("scipy")
    done = ordinary(BECOME + CLASS.format(folder=str(ordinary.folder)))
    assert "class marked as user 65534" in done.stdout, done.stderr[-3000:]


def test_without_namespaces_nobody_is_marked_and_the_way_out_is_said(sandbox, ordinary):
    done = ordinary(WITHOUT_NAMESPACES + BECOME + CLASS.format(folder=str(ordinary.folder)))
    assert "attnlib mark: no sandbox works here" in done.stderr, done.stderr[-3000:]
    assert "as root, `sysctl user.max_user_namespaces=15000` allows it. Or name a container image" in done.stderr
    assert sorted(path.name for path in ordinary.folder.iterdir()) == ["in"]


CLOSED = """
import sys
from pathlib import Path
from attnlib.marking.submissions import find
folder = Path({folder!r})
for student in ("open", "shut", "listed"):
    folder.joinpath(student).mkdir()
    for name in ("a.ipynb", "b.ipynb"):
        folder.joinpath(student, name).write_text("def softmax", encoding="utf-8")
folder.joinpath("open", "b.ipynb").chmod(0)
folder.joinpath("shut").chmod(0)
folder.joinpath("listed").chmod(0o444)
print([(one.id, one.path and one.path.name) for one in find(folder, ["softmax"])])
"""


def test_what_may_not_be_read_stops_nobody(ordinary):
    """Archives keep the rights of what is packed in them."""
    done = ordinary(BECOME + CLOSED.format(folder=str(ordinary.folder)))
    assert "[('listed', None), ('open', 'a.ipynb'), ('shut', None)]" in done.stdout, done.stderr[-3000:]
