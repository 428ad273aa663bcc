"""Marking in containers: with Docker's daemon where there is one, and everywhere with a `docker` that makes no container."""

import json
import os
import runpy
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from functools import partial
from pathlib import Path

import pytest

from attnlib.marking import sample, serving
from attnlib.marking.assignment import Assignment
from attnlib.marking.cli import main
from attnlib.marking.marker import Marker, right_cells
from attnlib.marking.sandbox import NoSandbox, Sandbox

HERE = Path(__file__).parent
NAMES = runpy.run_path(str(HERE / "tricks.py"))
TRICKS, WRONG, inside = NAMES["TRICKS"], NAMES["WRONG"], NAMES["inside"]
LESSON = Assignment.of_lessons(["02"])
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="marking needs Linux")


def docker(*arguments):
    return subprocess.run(["docker", *arguments], capture_output=True, text=True)


@pytest.fixture(scope="module")
def image():
    """An image of this machine's Python, NumPy and SciPy."""
    if not shutil.which("docker"):
        pytest.skip("Docker is not installed")
    if (told := docker("info")).returncode:
        pytest.skip(f"Docker's daemon does not answer: {told.stderr.strip().splitlines()[-1]}")
    name = f"attnlib-test-{os.getpid()}"
    runpy.run_path(str(HERE / "image.py"))["make"](name, ["numpy", "scipy"])
    yield name
    docker("rmi", name)


@pytest.fixture(scope="module")
def marker(image):
    with Marker(LESSON, serving.choose(image=image, seconds=2, wall=15)) as marker:
        yield marker


def containers(image):
    return docker("ps", "-aq", "--filter", f"ancestor={image}").stdout.split()


def wait_until(true, seconds=20):
    deadline = time.monotonic() + seconds
    while not true() and time.monotonic() < deadline:
        time.sleep(0.1)
    return true()


def test_the_sample_class_gets_what_is_due(image, tmp_path, monkeypatch):
    monkeypatch.setattr(serving, "choose", partial(serving.choose, seconds=2, wall=15))
    sample.write(tmp_path / "in")
    command = ["mark", str(tmp_path / "in"), "--lesson", "02", "--to", str(tmp_path / "m.csv"), "--quiet"]
    assert main([*command, "--image", image]) == 0
    lines = [json.loads(line) for line in (tmp_path / "m.jsonl").read_text(encoding="utf-8").splitlines()]
    got = {line["id"]: {mark["name"] for mark in line["exercises"] if mark["points"]} for line in lines}
    assert got == {student.id: set(student.right) for student in sample.STUDENTS}
    assert {line["sandbox"] for line in lines} == {"sandbox: docker"}


@pytest.mark.parametrize("number", TRICKS)
def test_a_trick_gives_no_marks(marker, number):
    for cell in TRICKS[number]:
        assert {mark.status for mark in marker.mark([WRONG, cell])[0]} <= {"not yet", "missing"}, cell


FRAGILE = {  # what one answer might do to the next, and what it meets
    "it stops the server's process": ("import os\nos.kill(os.getppid(), 19)", "PermissionError"),
    "it stops all processes": ("import os\nos.kill(-1, 19)", "The shape is right"),
    "it interrupts the first process": ("import os\nos.kill(1, 2)", "PermissionError"),
    "it leaves a file": ("open('/tmp/left', 'w')", "Error"),
    "it leaves a file in shared memory": ("open('/dev/shm/left', 'w')", "Error"),
    "it leaves shared memory": (
        "import ctypes\nif ctypes.CDLL(None).shmget(7, 4096, 0o1666) >= 0: raise ValueError('got it')",
        "The shape is right",
    ),
    "it writes on the disk": ("import sys\nopen(sys.prefix + '/x', 'w')", "Read-only file system"),
    "it looks into the server": ("open('/proc/1/mem')", "PermissionError"),
    "it writes to the marker": ("import os\nopen('/proc/%d/fd/1' % os.getppid(), 'wb')", "PermissionError"),
    "it becomes root": ("import os\nos.setuid(0)", "PermissionError"),
    "it is root": (
        "import os\nif 0 in os.getresuid() + os.getresgid(): raise ValueError('root')",
        "The shape is right",
    ),
    "it calls home": ("import socket\nsocket.create_connection(('1.1.1.1', 53), 1)", "Network is unreachable"),
}


@pytest.mark.parametrize("what", FRAGILE)
def test_walls_between_submissions(marker, what):
    body, said = FRAGILE[what]
    process = marker.server.process.pid
    text = marker.mark(["import numpy as np", inside(body)])[0][0].text
    assert said in text and "got it" not in text, text
    assert marker.server.process.pid == process, "the server had to be started again"
    assert {mark.status for mark in marker.mark(right_cells(LESSON))[0]} == {"right"}


def test_no_container_stays(image, tmp_path):
    with Marker(LESSON, Sandbox("docker", image, seconds=2, wall=5)):
        assert containers(image)
    sample.write(tmp_path / "in")
    command = [sys.executable, "-m", "attnlib.marking", "mark", str(tmp_path / "in"), "--lesson", "02"]
    command += ["--to", str(tmp_path / "m.csv"), "--image", image]
    before = set(containers(image))
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    journal = tmp_path / "m.jsonl"
    assert wait_until(lambda: journal.exists() and journal.stat().st_size, 60)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert wait_until(lambda: set(containers(image)) <= before, 60)


def test_what_is_wrong_with_an_image_is_said(image):
    with pytest.raises(NoSandbox, match="Error response from daemon.*docker run --rm no/such:image python3 -c"):
        serving.choose(image="no/such:image")
    with pytest.raises(NoSandbox, match="No module named 'torch'"):
        serving.Server(Sandbox("docker", image), torch=True)


FAKE = """\
#!{python}
import os, sys
command, *options = sys.argv[1:]
assert command == "run" and os.environ["DOCKER_HOST"] == "tcp://elsewhere", (command, os.environ)
for flag in ("-i", "--rm", "--read-only"):
    options.remove(flag)
pairs = []
while options[0].startswith("-"):
    pairs.append((options.pop(0), options.pop(0)))
for pair in (("--network", "none"), ("--ipc", "none"), ("--cap-drop", "ALL"), ("--entrypoint", "python3")):
    assert pair in pairs, pairs
image, isolated, flag, boot = options
assert (image, isolated, flag) == ("course", "-I", "-c"), options
path = "import sys; sys.path.append({packages!r})\\n"
os.execvpe("unshare", ["unshare", "--pid", "--fork", "--kill-child", "{python}", "-I", "-S", "-c", path + boot], {{}})
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="making processes of another user needs root")
def test_the_command_with_a_docker_that_makes_no_container(sandbox, tmp_path, monkeypatch):
    import numpy

    packages = tmp_path / "packages"
    packages.mkdir()
    for folder in Path(numpy.__file__).parents[1].glob("numpy*"):  # without attnlib, which is refused in a container
        packages.joinpath(folder.name).symlink_to(folder)
    fake = tmp_path / "docker"
    fake.write_text(FAKE.format(python=sys.executable, packages=str(packages)), encoding="utf-8")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("DOCKER_HOST", "tcp://elsewhere")
    chosen = serving.choose(image="course")
    assert chosen.label == "sandbox: docker"
    with Marker(LESSON, chosen) as marker:
        text = marker.mark(["import numpy as np", inside(textwrap.dedent("import os\nos.kill(1, 9)"))])[0][0].text
        assert "PermissionError" in text, text
    packages.joinpath("attnlib").symlink_to(HERE.parents[1] / "attnlib")
    with pytest.raises(NoSandbox, match="the solutions can be imported there"):
        serving.choose(image="course")
