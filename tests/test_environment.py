"""The report of what is installed."""

from importlib.metadata import PackageNotFoundError

from attnlib import environment


def test_report_says_what_to_do(monkeypatch, capsys):
    versions = {"numpy": "2.0rc1", "matplotlib": "3.8.0", "seaborn": "0.13.2"}

    def version(package):
        if package not in versions:
            raise PackageNotFoundError(package)
        return versions[package]

    monkeypatch.setattr(environment, "version", version)
    environment.report()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("attnlib ")
    assert lines[3] == "numpy       2.0rc1     too old, the lessons need 2.0 or newer"
    assert lines[4] == "matplotlib  3.8.0      fine"
    assert lines[5] == "torch       missing    fine for Part I; Part II needs 2.6 or newer"
    del versions["numpy"]
    environment.report()
    assert "numpy       missing    install it: python -m pip install numpy" in capsys.readouterr().out
