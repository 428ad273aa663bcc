"""Broken submissions cost only themselves, right ones their points; a run that was stopped goes on where it was."""

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import joblib
import pytest

from attnlib.marking import batch, sample
from attnlib.marking.assignment import Assignment, Task
from attnlib.marking.cli import main
from attnlib.marking.marker import Marker
from attnlib.marking.results import alike, harmless
from attnlib.marking.sandbox import NoSandbox, Sandbox
from attnlib.marking.submissions import NotANotebook, code_cells, find

LESSON = Assignment.of_lessons(["02"], points={"softmax": 2, "attention_scores": 1})
NAMES = list(sample.RIGHT)


def notebook(*sources):
    return json.dumps(sample.notebook_of(list(sources))).encode()


def run(folder, to, sandbox, **options):
    submissions = find(folder, NAMES)
    return batch.mark_all(submissions, LESSON, sandbox, to, 7, progress=False, **options)


@pytest.fixture(scope="module")
def marked(sandbox, tmp_path_factory):
    """The sample class, marked once by the command."""
    pytest.importorskip("scipy")
    folder = tmp_path_factory.mktemp("class")
    sample.write(folder / "submissions")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("attnlib.marking.serving.choose", lambda unsafe, image: sandbox)
        table = folder / "marks.csv"
        code = main(["mark", str(folder / "submissions"), "--lesson", "02", "--to", str(table), "--quiet"])
    assert code == 0
    lines = [json.loads(line) for line in (folder / "marks.jsonl").read_text(encoding="utf-8").splitlines()]
    return table, {line["id"]: line for line in lines}


def test_the_sample_class_has_thirty_submissions_and_a_line_for_each(marked):
    table, lines = marked
    rows = list(csv.DictReader(table.read_text(encoding="utf-8").splitlines()))
    assert [row["id"] for row in rows] == [student.id for student in sample.STUDENTS]
    assert len(rows) == len(lines) == 30
    assert {row["sandbox"] for row in rows} == {next(iter(lines.values()))["sandbox"]}


@pytest.mark.parametrize("student", sample.STUDENTS, ids=lambda student: student.id)
def test_each_gets_what_is_due(marked, student):
    line = marked[1][student.id]
    got = {mark["name"]: mark for mark in line["exercises"]}
    assert {name for name, mark in got.items() if mark["points"]} == set(student.right)
    assert bool(line["error"]) == (student.raw is not None)
    if student.mistake:
        named = [mark["mistakes"] for mark in got.values() if mark["status"] != "right"]
        assert named == [[student.mistake]]
    for mark in got.values():
        assert "Until it is right" not in mark["text"] and mark["text"].startswith(mark["name"])


def test_copies_and_library_calls_are_named(marked):
    rows = {row["id"]: row for row in csv.DictReader(marked[0].read_text(encoding="utf-8").splitlines())}
    assert rows["s30-copied"]["code like"] == "s02-loops (softmax)"
    assert rows["s02-loops"]["code like"] == "s30-copied (softmax)"
    assert rows["s29-library"]["library calls"] == "softmax: scipy.special.softmax"
    assert not rows["s01-right"]["code like"] and not rows["s03-einsum"]["code like"]


R = sample.RIGHT
GOOD = [sample.IMPORTS, *(part for name in R for part in (R[name], f'{name} = check("{name}")'))]
HARMLESS = {
    "magics": ["%matplotlib inline\n!pip install x\nx = !ls\n%time y = 1", "%%bash\nrm -rf /", "%%time\nz = 1", *GOOD],
    "input": ["name = input('who?')", *GOOD, "input()"],
    "loop at the top": ["while True:\n    pass", *GOOD],
    "slow assignment": ["import time\nslow = time.sleep(60)", *GOOD],
    "slow assignment that is needed": ["import time\nslow = time.sleep(60)", *GOOD, "def unused(): return slow"],
    "exit": ["import sys\nsys.exit()", *GOOD, "exit()"],
    "os._exit in an assignment that is needed": [
        "import os\nnp_zero = os._exit(0)",
        *[cell.replace("np.exp", "(np_zero if False else np.exp)") for cell in GOOD],
    ],
    "syntax error elsewhere": ["def broken(:", *GOOD],
    "5 MB of source": ["x = '" + "x" * 5_000_000 + "'", *GOOD],
    "many statements": ["\n".join(f"x{i} = {i}" for i in range(10_000)), *GOOD],
    "nested": ["x = " + "(" * 150 + "1" + ")" * 150, "y = " + "-" * 60_000 + "1", *GOOD],
    "helper in another cell": [
        "EPSILON = 0.0\ndef shifted(s):\n    return s - s.max(axis=-1, keepdims=True) + EPSILON",
        *GOOD,
        "def softmax(scores):\n    e = np.exp(shifted(scores))\n    return e / e.sum(axis=-1, keepdims=True)",
    ],
    "helper with the name of a later variable": [
        *GOOD[:1],
        "def weights(s):\n    return np.exp(s - s.max(axis=-1, keepdims=True))",
        "def softmax(scores):\n    return weights(scores) / weights(scores).sum(axis=-1, keepdims=True)",
        'softmax = check("softmax")',
        "weights = softmax(np.ones((2, 2)))",
        *GOOD[3:],
    ],
    "an older attempt above": ["def softmax(scores):\n    return scores", 'softmax = check("softmax")', *GOOD],
    "globals": [
        *GOOD[:1],
        R["softmax"].replace("softmax", "by_hand"),
        "def softmax(scores):\n    return globals()['by_hand'](scores)",
        *GOOD[3:],
    ],
    "a helper further down": [
        *GOOD,
        "def softmax(scores):\n    return further_down(scores)",
        'softmax = check("softmax")',
        R["softmax"].replace("softmax", "further_down"),
        "sum = max = 1",
    ],
    "lambda": [
        *GOOD,
        "softmax = lambda s: np.exp(s - s.max(-1, keepdims=True)) / np.exp(s - s.max(-1, keepdims=True)).sum(-1, keepdims=True)",
    ],
    "prints and warnings": [
        *GOOD,
        "import warnings\n" + R["softmax"].replace("    exp", "    print('hm'); warnings.warn('x')\n    exp", 1),
    ],
    "top-level await": ["import asyncio\nawait asyncio.sleep(0)", *GOOD],
    "lone surrogate": ["text = '\ud800'", *GOOD],
    "what the lesson imports": [
        "from attnlib.data import recorded, sentence",
        *GOOD,
        R["query_matrix"].replace("query_matrix", "with_names") + "\n\ndef query_matrix(strength):\n"
        "    assert sentence.FEATURES.index('living') == 1\n    return with_names(strength)",
    ],
    "checks deleted": [sample.IMPORTS, *R.values()],
}


@pytest.mark.parametrize("case", HARMLESS)
def test_what_else_is_in_a_notebook_costs_no_marks(marker, case):
    marks, _ = marker.mark(code_cells(notebook(*HARMLESS[case])))
    assert [mark.status for mark in marks] == ["right"] * 4, [mark.text for mark in marks]


BROKEN = {
    "empty": b"",
    "spaces": b"  \n",
    "not_json": b"{'cells'",
    "binary": bytes(range(256)) * 10,
    "number": b"4",
    "list": b"[[[1]]]",
    "deep": b"[" * 100_000,
    "no_cells": b"{}",
    "cells_of_odd_types": b'{"cells": [1, null, [], {"cell_type": 3}, {"cell_type": "code", "source": 5}, "x"]}',
    "only_text": b'{"cells": [{"cell_type": "markdown", "source": "def softmax(x): 1"}]}',
}
LIMBS = {
    "recursion": "return softmax(scores)",
    "deep_recursion": "import sys; sys.setrecursionlimit(10**9)\n    return softmax(scores)",
    "threads": "import threading\n    [threading.Thread(target=input).start() for _ in range(10**4)]",
    "fork_bomb": "import os\n    while True: os.fork()",
    "memory": "x = [bytearray(10**8) for _ in range(10**5)]",
    "huge_result": "return np.zeros(10**8, dtype=np.int8)",
    "many_results": "return list(range(10**6))",
    "closes_everything": "import os; os.closerange(0, 1000)",
    "stops": "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)\n    return 1",
    "abort": "import os; os.abort()",
}


def test_broken_submissions_cost_only_themselves(sandbox, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for name, data in BROKEN.items():
        folder.joinpath(f"{name}.ipynb").write_bytes(data)
    for name, body in LIMBS.items():
        answer = f"import numpy as np\ndef softmax(scores):\n    {body}"
        cells = [sample.IMPORTS, answer, *(R[name] for name in R if name != "softmax")]
        folder.joinpath(f"limb_{name}.ipynb").write_bytes(notebook(*cells))
    output = sample.notebook_of(GOOD)
    output["cells"][0]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "x" * 50_000_000}]
    folder.joinpath("output_of_50_mb.ipynb").write_text(json.dumps(output), encoding="utf-8")
    folder.joinpath("z_right.ipynb").write_bytes(notebook(*GOOD))
    folder.joinpath("no_notebook").mkdir()
    folder.joinpath("link.ipynb").symlink_to(folder / "z_right.ipynb")
    lines = {line["id"]: line for line in run(folder, tmp_path / "m.jsonl", sandbox)}
    assert "link" not in lines and len(lines) == len(BROKEN) + len(LIMBS) + 3
    for name in BROKEN:
        assert lines[name]["points"] == 0 and (lines[name]["error"] or name == "cells_of_odd_types"), name
    assert "no notebook" in lines["no_notebook"]["error"]
    for name in LIMBS:
        status = {mark["name"]: mark["status"] for mark in lines[f"limb_{name}"]["exercises"]}
        assert status == {n: "not yet" if n == "softmax" else "right" for n in NAMES}, (name, status)
    assert lines["z_right"]["points"] == lines["output_of_50_mb"]["points"] == lines["z_right"]["of"]


def test_a_run_that_was_killed_goes_on(sandbox, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(12):
        folder.joinpath(f"s{number:02}.ipynb").write_bytes(notebook(*GOOD, f"x = {number}"))
    command = [
        sys.executable,
        "-m",
        "attnlib.marking",
        "mark",
        str(folder),
        "--lesson",
        "02",
        "--to",
        str(tmp_path / "m.csv"),
    ]
    journal = tmp_path / "m.jsonl"
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and not (journal.exists() and journal.read_bytes().count(b"\n") >= 3):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    with journal.open("ab") as file:
        file.write(b'{"id": "s09", "points": 8')  # stopped in the middle of a line
    before = journal.read_text(encoding="utf-8").splitlines()[:-1]
    assert subprocess.run(command, capture_output=True, check=True).returncode == 0
    after = journal.read_text(encoding="utf-8").splitlines()
    assert after[: len(before)] == before
    assert sorted(json.loads(line)["id"] for line in after) == [f"s{number:02}" for number in range(12)]
    assert len((tmp_path / "m.csv").read_text(encoding="utf-8").splitlines()) == 13
    folder.joinpath("s03.ipynb").write_bytes(notebook(*GOOD, "x = 'handed in again'"))
    subprocess.run(command, capture_output=True, check=True)
    assert len(journal.read_text(encoding="utf-8").splitlines()) == 13


def test_what_training_needs_of_pytorch_is_imported_once_not_once_a_submission(sandbox):
    pytest.importorskip("torch")
    answer = """import sys
BEFORE = set(sys.modules)
def train_step(model, optimizer, ids, lengths, labels, max_norm):
    optimizer.zero_grad()
    raise ValueError(f"{len(set(sys.modules) - BEFORE)} modules")"""
    with Marker(Assignment("training", (Task("11", "train_step"),)), sandbox) as marker:
        text = marker.mark([answer])[0][0].text
    assert int(re.search(r"(\d+) modules", text)[1]) < 30, text


def test_two_processes_and_a_folder_for_each_student(sandbox, tmp_path):
    for number in range(4):
        folder = tmp_path / "in" / f"=s{number}" / "ps1"
        folder.mkdir(parents=True)
        folder.joinpath("old.ipynb").write_bytes(notebook("x = 1"))
        folder.joinpath("p1 (1).ipynb").write_bytes(notebook(*GOOD))
    lines = run(tmp_path / "in", tmp_path / "m.jsonl", sandbox, jobs=2)
    assert [line["points"] for line in lines] == [8.0] * 4
    assert lines[0]["note"] == "read ps1/p1 (1).ipynb, not ps1/old.ipynb"
    from attnlib.marking.results import write_marks

    write_marks(lines, LESSON, tmp_path / "m.csv")
    assert (tmp_path / "m.csv").read_text(encoding="utf-8").splitlines()[1].startswith("'=s0,8,8,2,")


def test_a_cluster_of_two_dask_workers(sandbox, tmp_path, recwarn):
    distributed = pytest.importorskip("distributed")
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(6):
        folder.joinpath(f"s{number}.ipynb").write_bytes(notebook(*GOOD[: 3 + number]))
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "processes": True}
    with distributed.LocalCluster(**options) as cluster:
        lines = run(folder, tmp_path / "m.jsonl", sandbox, jobs=2, backend="dask", cluster=cluster.scheduler_address)
    assert [line["id"] for line in lines] == [f"s{number}" for number in range(6)]
    assert lines[-1]["points"] > lines[0]["points"] > 0


class AllAtOnce(joblib.parallel.ThreadingBackend):
    """Hands results over when all are there, as Ray's backend does."""

    supports_return_generator = False


def test_a_backend_that_hands_over_results_when_all_are_there(sandbox, tmp_path, monkeypatch):
    joblib.register_parallel_backend("all at once", AllAtOnce)
    monkeypatch.setattr(batch, "PART", 2)
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(5):
        folder.joinpath(f"s{number}.ipynb").write_bytes(notebook(*GOOD[: 3 + number]))
    lines = run(folder, tmp_path / "m.jsonl", sandbox, jobs=1, backend="all at once")
    assert [line["id"] for line in lines] == [f"s{number}" for number in range(5)]
    assert len((tmp_path / "m.jsonl").read_text(encoding="utf-8").splitlines()) == 5


def test_a_broken_sandbox_stops_the_run(tmp_path, sandbox):
    tmp_path.joinpath("s.ipynb").write_bytes(notebook(*GOOD))
    broken = Sandbox(sandbox.mode, image=sandbox.image, reply=100)
    with pytest.raises(NoSandbox):
        run(tmp_path, tmp_path / "m.jsonl", broken)
    assert not (tmp_path / "m.jsonl").read_bytes()


def test_without_a_sandbox_the_command_refuses_and_unsafe_is_stamped(tmp_path, monkeypatch, capsys):
    if sys.platform != "linux":
        pytest.skip("marking needs Linux")
    tmp_path.joinpath("s.ipynb").write_bytes(notebook(*GOOD))
    command = ["mark", str(tmp_path), "--lesson", "02", "--to", str(tmp_path / "m.csv"), "--quiet"]
    monkeypatch.setattr("attnlib.marking.serving.Server", lambda *a, **k: (_ for _ in ()).throw(NoSandbox("it fails")))
    assert main(command) == 2
    assert "--unsafe" in capsys.readouterr().err and not (tmp_path / "m.csv").exists()
    monkeypatch.undo()
    assert main([*command, "--unsafe"]) == 0
    assert "UNSAFE: no sandbox" in capsys.readouterr().out
    assert "UNSAFE: no sandbox" in (tmp_path / "m.csv").read_text(encoding="utf-8")
    monkeypatch.setattr("sys.platform", "darwin")
    assert main([*command, "--unsafe"]) == 2
    assert "marking needs Linux; this is darwin" in capsys.readouterr().err


def test_the_command_for_docker():
    command = Sandbox("docker", image="course").command()
    assert command[:4] == ["docker", "run", "-i", "--rm"]
    for option in (
        "--network none",
        "--read-only",
        "--cap-drop ALL",
        "no-new-privileges",
        "--ipc none",
        "--pids-limit",
    ):
        assert option in " ".join(command)
    assert command.index("course") < command.index("-c") and "--volume" not in command


@pytest.mark.parametrize(
    "arguments, said",
    [
        ([], "either --lesson 02"),
        (["--lesson", "2"], "expected two digits"),
        (["--lesson", "02", "--points", "softmax:3"], "expected pairs"),
        (["--lesson", "02", "--points", "sotfmax=3"], "sotfmax, which is not asked for"),
    ],
)
def test_errors_say_what_to_do(tmp_path, capsys, arguments, said):
    assert main(["mark", str(tmp_path), *arguments]) == 2
    assert said in capsys.readouterr().err


def test_cells_are_read_whatever_the_format():
    assert code_cells(b'\xef\xbb\xbf{"cells": [{"cell_type": "code", "source": ["a\\n", "b"]}]}') == ["a\nb"]
    old = {"worksheets": [{"cells": [{"cell_type": "code", "input": "a"}, {"cell_type": "markdown", "source": "b"}]}]}
    assert code_cells(json.dumps(old).encode()) == ["a"]
    with pytest.raises(NotANotebook, match="no list of cells"):
        code_cells(b'{"cells": 3}')


def test_no_cell_of_the_table_is_a_formula():
    for text in ("=1+1", "+1", "-1", "@x", "\t=1", "\r=1", " =1"):
        assert harmless(text).startswith("'")
    assert harmless('李, "x"') == '李, "x"'


def test_a_common_answer_is_no_copy():
    code = {"softmax": {"shape": "s", "text": "t", "size": 500}}
    line = {"exercises": [{"name": "softmax", "status": "right"}], "code": code}
    assert len(alike([line | {"id": str(i)} for i in range(3)], LESSON)) == 3
    assert not alike([line | {"id": str(i)} for i in range(30)], LESSON)


def test_ids_stay_apart_whatever_files_are_called(tmp_path):
    for name in ("a.json", "a.ipynb", "a.json.ipynb"):
        tmp_path.joinpath(name).write_bytes(notebook(*GOOD))
    for name in ("alice", "bob"):
        tmp_path.joinpath(name).mkdir()
        for path in (f"{name}/ps1.ipynb", f"{name}.ipynb"):
            tmp_path.joinpath(path).write_bytes(notebook(*GOOD))
    found = find(tmp_path, NAMES)
    assert sorted(one.id for one in found) == sorted(path.name for path in tmp_path.iterdir())
    assert {one.id: one.path.name for one in found}["alice"] == "ps1.ipynb"


def test_a_folder_that_is_reached_by_a_link_is_read(tmp_path):
    folder = tmp_path / "real" / "alice"
    folder.mkdir(parents=True)
    folder.joinpath("ps1.ipynb").write_bytes(notebook(*GOOD))
    folder.joinpath("elsewhere").symlink_to(tmp_path)
    tmp_path.joinpath("link").symlink_to(tmp_path / "real")
    assert [(one.id, one.path.name) for one in find(tmp_path / "link", NAMES)] == [("alice", "ps1.ipynb")]


def test_what_is_no_file_is_not_read(tmp_path):
    """From a pipe nothing ever comes, and a device such as /dev/zero never ends."""
    os.mkfifo(tmp_path / "pipe.ipynb")
    (pipe,) = find(tmp_path, NAMES)
    writer = os.open(pipe.path, os.O_RDWR)
    threading.Timer(1, os.close, [writer]).start()  # so that this test would fail, and not hang
    with pytest.raises(NotANotebook, match="it is no file, but something from which reading might never end"):
        pipe.read()


def test_folders_within_folders_without_end_stop_nobody(tmp_path):
    student = tmp_path / "deep"
    student.mkdir()
    student.joinpath("ps1.ipynb").write_bytes(notebook(*GOOD))
    inner = os.open(student, os.O_RDONLY)
    for _ in range(600):  # whose path is longer than any that the system takes
        os.mkdir("eight_le", dir_fd=inner)
        outer, inner = inner, os.open("eight_le", os.O_RDONLY, dir_fd=inner)
        os.close(outer)
    os.close(inner)
    assert [(one.id, one.path.name) for one in find(tmp_path, NAMES)] == [("deep", "ps1.ipynb")]
    shutil.rmtree(student)


def test_a_notebook_that_would_fill_the_memory_is_not_read():
    """33 million empty lists are 100 MB in a file, and 2.5 GB once they are read."""
    with pytest.raises(NotANotebook, match="more than 5,000,000 parts"):
        code_cells(b'{"cells": [' + b"[]," * 2_500_001 + b"[]]}")
    with pytest.raises(NotANotebook, match="more than 5,000,000 parts"):
        code_cells(b'{"cells": [' + b'"",' * 5_000_001 + b'""]}')


def test_a_notebook_that_printed_a_long_table_is_read():
    printed = {"output_type": "stream", "name": "stdout", "text": ["0.1, " * 1_000 + '"\n'] * 5_001}
    cells = [{"cell_type": "code", "source": "x = 1", "outputs": [printed]}]
    assert code_cells(json.dumps({"cells": cells}).encode()) == ["x = 1"]


def test_no_student_breaks_the_table(tmp_path):
    """A cell that is too long goes on in another row, or stops whoever reads it; a terminal obeys control characters."""
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(300):
        folder.joinpath(f"copy {number}.ipynb").write_bytes(notebook(*GOOD))
    (one,) = find(tmp_path, NAMES)
    assert one.note.endswith("copy 107.ipynb and 289 more") and len(one.note) < 250
    assert harmless("torch.x" * 30_000) == "torch.x" * 285 + "torc…"
    assert harmless("a\x1b]0;owned\x07\x9b2J\tb\x00") == "a]0;owned2J b"
