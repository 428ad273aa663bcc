import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tools"))

import notebooks  # noqa: E402


def pytest_generate_tests(metafunc):
    """A test that takes `lesson` runs for each lesson; `lesson_of_part_one` is 00 to 07, `later_lesson` needs PyTorch."""
    part_one = [path for path in notebooks.LESSONS if path.stem[:2] <= "07"]
    later = [path for path in notebooks.LESSONS if path not in part_one and find_spec("torch") is not None]
    for name, lessons in (("lesson", part_one + later), ("lesson_of_part_one", part_one), ("later_lesson", later)):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, lessons, ids=lambda path: path.stem)
