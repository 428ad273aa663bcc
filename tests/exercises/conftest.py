from attnlib.exercises import all_exercises


def pytest_generate_tests(metafunc):
    """A test that takes `exercise` runs for each exercise of each lesson."""
    if "exercise" in metafunc.fixturenames:
        metafunc.parametrize("exercise", all_exercises().values(), ids=all_exercises().keys())
