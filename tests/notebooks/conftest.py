import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tools"))

import notebooks  # noqa: E402


def pytest_generate_tests(metafunc):
    """A test that takes `lesson` runs for each lesson; one that takes `lesson_of_part_one`, for 00 to 07."""
    part_one = [path for path in notebooks.LESSONS if path.stem[:2] <= "07"]
    for name, lessons in (("lesson", notebooks.LESSONS), ("lesson_of_part_one", part_one)):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, lessons, ids=lambda path: path.stem)
