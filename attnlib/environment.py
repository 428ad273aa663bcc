"""What is installed, and whether it is new enough for the lessons."""

import platform
from importlib.metadata import PackageNotFoundError, version

import attnlib

NEEDED = {"numpy": "2.0", "matplotlib": "3.8"}
LATER = {"torch": "2.6", "seaborn": "0.13"}


def report() -> None:
    """Print the versions of Python and of the packages that the lessons use, one a line, and what to do about each."""
    print(f"attnlib     {attnlib.__version__}")
    print(f"system      {platform.system()} {platform.machine()}")
    print(f"python      {platform.python_version():<10} {_verdict(platform.python_version(), '3.11')}")
    for package, least in (NEEDED | LATER).items():
        try:
            found = version(package)
        except PackageNotFoundError:
            found = None
        if found is not None:
            print(f"{package:<11} {found:<10} {_verdict(found, least)}")
        elif package in NEEDED:
            print(f"{package:<11} missing    install it: python -m pip install {package}")
        else:
            print(f"{package:<11} missing    fine for Part I; Part II needs {least} or newer")


def _verdict(found: str, least: str) -> str:
    from packaging.version import Version  # comes with matplotlib; it knows versions such as 2.13.0+cpu and 2.0rc1

    return "fine" if Version(found) >= Version(least) else f"too old, the lessons need {least} or newer"
