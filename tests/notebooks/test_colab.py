"""Colab, simulated: a fresh environment without attnlib, an empty folder with nothing but the lesson.

The set-up cell fetches the package by its public address, which git redirects to a copy of this repository. Part I
runs without PyTorch, which is also the test that it needs none.
"""

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from notebooks import CHECK, LESSONS, ROOT, address, read, version

PACKAGES = ["numpy", "matplotlib", "ipykernel", "nbclient"]


def git(folder, *command):
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "core.autocrlf=false"]
    return subprocess.run(["git", *identity, *command], cwd=folder, capture_output=True, text=True, check=True).stdout


def pinned(package):
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    return next((line.split()[0] for line in lines if line.startswith(f"{package}==")), package)


def fresh(folder):
    """Python of a fresh environment, and an environment in which the public address leads to a copy of this tree."""
    repository = folder / "repository"
    files = git(
        ROOT,
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
        "attnlib",
        "pyproject.toml",
        "README.md",
        "LICENSE",
    )
    for name in files.splitlines():
        if (ROOT / name).exists():
            (repository / name).parent.mkdir(parents=True, exist_ok=True)
            (repository / name).write_bytes((ROOT / name).read_bytes())
    git(repository, "init", "-q")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "all")
    git(repository, "tag", f"v{version()}")
    venv.create(folder / "venv", with_pip=True)
    python = next(path for path in (folder / "venv/bin/python", folder / "venv/Scripts/python.exe") if path.exists())
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment |= {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{repository.as_uri()}.insteadOf",
        "GIT_CONFIG_VALUE_0": address(),
        "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",
        "JUPYTER_PATH": "",
        "IPYTHONDIR": str(folder / "ipython"),
    }
    return python, environment


@pytest.fixture(scope="module")
def colab(tmp_path_factory):
    """Without PyTorch: nothing but what Part I needs is installed."""
    python, environment = fresh(tmp_path_factory.mktemp("colab"))
    installed = subprocess.run(
        [python, "-m", "pip", "install", "-q", *map(pinned, PACKAGES)], capture_output=True, text=True
    )
    if installed.returncode and not os.environ.get("CI"):
        pytest.skip(f"no package index in reach: {installed.stderr[-200:]}")
    assert installed.returncode == 0, installed.stderr
    return python, environment


@pytest.fixture(scope="module")
def colab_with_torch(tmp_path_factory):
    """With all packages of the environment that runs this test, but without attnlib."""
    python, environment = fresh(tmp_path_factory.mktemp("colab_with_torch"))
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    own = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    # A path in a .pth file brings the packages in that folder, and not what its own .pth files lead to: an editable attnlib.
    (Path(own) / "packages.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return python, environment


RUN = """
import sys, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=300, kernel_name="python3", coalesce_streams=True).execute()
nbformat.write(notebook, sys.argv[1])
"""


def has(python, module):
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    return subprocess.run([python, "-I", "-c", code], check=False).returncode == 0


def test_a_lesson_of_part_one_alone_in_an_empty_folder(lesson_of_part_one, colab, tmp_path):
    python, _ = colab
    if lesson_of_part_one == LESSONS[0]:
        assert not has(python, "attnlib"), "the set-up cell has to fetch it"
    run_alone(lesson_of_part_one, colab, tmp_path)
    assert not has(python, "torch")


def test_a_later_lesson_alone_in_an_empty_folder(later_lesson, colab_with_torch, tmp_path):
    python, _ = colab_with_torch
    if later_lesson == next(path for path in LESSONS if path.stem > "08"):
        assert not has(python, "attnlib"), "the set-up cell has to fetch it"
    run_alone(later_lesson, colab_with_torch, tmp_path)


def run_alone(lesson, colab, tmp_path):
    python, environment = colab
    copy = tmp_path / lesson.name
    copy.write_bytes(lesson.read_bytes())
    done = subprocess.run(
        [python, "-c", RUN, lesson.name], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    assert has(python, "attnlib")
    before, after = read(lesson), read(copy)
    for old, new in zip(before.cells, after.cells, strict=True):
        if old.cell_type == "code" and CHECK.match(old.source):
            assert old.outputs == new.outputs  # the same words on this machine, without the rest of the repository
    set_up = "".join(output.get("text", "") for output in after.cells[1].outputs)
    assert f"attnlib {version()}" in set_up


def test_the_fetched_package_is_not_this_folder(colab):
    python, _ = colab
    code = "import attnlib, sys; print(attnlib.__file__); sys.exit()"
    where = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True, cwd=python.parent).stdout
    assert "site-packages" in where and Path(sys.executable).parent.parent not in Path(where).parents
