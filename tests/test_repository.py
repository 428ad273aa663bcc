"""The files around the code: environments that agree, one address, nothing of the machine where they were written."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[1]
CONDA_TO_PIP = {"pytorch-cpu": "torch", "matplotlib-base": "matplotlib", "seaborn-base": "seaborn"}
TEXTS = [
    ROOT / name
    for name in subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    if not name.endswith((".npz", ".png", ".ttf")) and (ROOT / name).exists()
]


def requirements():
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith(("#", "-e"))]


def pins():
    return {Requirement(line.split("#")[0]).name: Requirement(line.split("#")[0]).specifier for line in requirements()}


def conda():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    assert environment["channels"][0] == "conda-forge" and "defaults" not in environment["channels"]
    plain = [entry for entry in environment["dependencies"] if isinstance(entry, str)]
    (pip,) = [entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict)]
    assert pip[-1] == "-e ."  # the others are packages that conda-forge does not have
    split = [re.fullmatch(r"([\w-]+)(.*)", entry).groups() for entry in [*plain, *pip[:-1]]]
    return {CONDA_TO_PIP.get(name, name): spec for name, spec in split}


def test_requirements_are_exact_explained_and_end_in_the_package_itself():
    for line in requirements():
        assert re.fullmatch(r"[\w-]+==[\d.]+  # .{5,}", line), line
    assert (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()[-1].startswith("-e .")
    assert "torch==2.13.0" in (ROOT / "requirements.txt").read_text(encoding="utf-8")


def test_conda_names_the_same_packages_in_ranges_that_hold_the_pins():
    specs = conda()
    assert specs.pop("python").startswith("=3.1") and specs.pop("pip") == ""
    assert set(specs) == set(pins())
    for name, spec in specs.items():
        (pin,) = pins()[name]
        assert pin.version in SpecifierSet(spec), name


def test_pyproject_has_ranges_that_hold_the_pins_and_floors_below_colabs():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    ranges = [
        *project["dependencies"],
        *(line for extra in project["optional-dependencies"].values() for line in extra),
    ]
    named = {}
    for line in map(Requirement, ranges):
        (pin,) = pins()[line.name]
        assert pin.version in line.specifier, line.name
        named[line.name] = line.specifier
    assert set(named) == set(pins())
    for name, colab in {"numpy": "2.0.2", "matplotlib": "3.10.0", "torch": "2.9.0", "ipywidgets": "7.7.1"}.items():
        assert colab in named[name], name


def test_one_version():
    from attnlib import __version__

    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\n## {__version__} (" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_there_is_no_binder_folder_which_would_hide_environment_yml():
    assert not (ROOT / "binder").exists() and not (ROOT / ".binder").exists()


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_texts_are_utf8_with_line_feeds_and_hold_no_path_of_a_machine(path):
    text = path.read_bytes().decode("utf-8")
    assert "\r\n" not in text
    home = re.search(r"(?<![\w.])/(home|root|Users|work)/\w+", text)
    assert path.name in ("test_lint.py", "test_repository.py") or not home, home


def test_make_help_names_every_target():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)[1].split()
    for target in phony:
        assert re.search(rf"^{target}:.*## \S", makefile, re.MULTILINE), target


def test_the_verdict_in_the_readme_is_what_the_check_says():
    import numpy as np

    from attnlib.exercises.core import judge
    from attnlib.exercises.lesson_02 import check

    verdict = judge(check.exercises["softmax"], lambda scores: np.exp(scores) / np.exp(scores).sum())
    assert verdict.text in (ROOT / "README.md").read_text(encoding="utf-8")
