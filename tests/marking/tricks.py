"""The tricks of the research notes that have a meaning here, each as cells of a submission whose answers are all wrong.

The number is the trick's own. Those about nbgrader's cells, displays and environment (5, 12 to 15, 25, 26, 28) are tried in
the form that a notebook can hold; none of their code is even run.
"""

WRONG = """
import numpy as np

def softmax(scores):
    return scores

def attention_scores(query, key):
    return query @ key.swapaxes(-1, -2)

def scaled_dot_product_attention(query, key, value):
    return value

def query_matrix(strength):
    return np.ones((5, 3))
"""


def inside(body, name="softmax", arguments="scores"):
    """The trick within a function that the marker calls, and at its definition."""
    lines = "\n".join("    " + line for line in body.strip().splitlines())
    return f"def {name}({arguments}):\n{lines}\n    return {arguments.split(',')[0]}"


def outside(body):
    """The trick at the top level, in a form that is run: as the value of an assignment."""
    lines = "\n".join("    " + line for line in body.strip().splitlines())
    return f"def trick():\n{lines}\n    return 1\n\ntricked = trick()\ndef query_matrix(strength, once=tricked):\n    return np.ones((5, 3))"


PATCH_ALL = """
import numpy as np
for name in ("allclose", "array_equal", "isclose", "array_equiv"):
    setattr(np, name, lambda *a, **k: True)
"""

PATCH_CHECKER = """
import sys
for module in list(sys.modules.values()):
    for name in ("judge", "fault", "agree", "close", "unchanged", "run", "outcome", "pack", "same_type"):
        if "attnlib" in str(getattr(module, "__name__", "")) and hasattr(module, name) and name != "pack":
            setattr(module, name, lambda *a, **k: "")
"""

EQUAL_TO_ALL = """
class Equal(np.ndarray):
    def __eq__(self, other): return True
    def __array_function__(self, function, types, args, kwargs): return True
    def __array_ufunc__(self, *args, **kwargs): return True
    __hash__ = None

def softmax(scores):
    return np.asarray(scores).view(Equal)

class Duck:
    def __eq__(self, other): return True
    def __array__(self, *a, **k): return np.zeros((1, 2))
    def __getattr__(self, name): return Duck()
    def __call__(self, *a, **k): return Duck()
    shape, dtype, ndim = (1, 2), np.dtype("float64"), 2

def attention_scores(query, key):
    return Duck()
"""

FRAMES = """
import sys
frame = sys._getframe()
while frame is not None:
    for space in (frame.f_locals, frame.f_globals):
        for name, value in list(space.items()):
            if name in ("want", "expected", "case", "cases", "solution", "reference"):
                value = getattr(value, "expected", value)
                if isinstance(value, np.ndarray): return value
    frame = frame.f_back
"""

IMPORT_SOLUTION = """
import importlib, sys
for path in ("attnlib.numpy", "attnlib.numpy.attention", "attnlib.exercises.lesson_02"):
    try:
        return importlib.import_module(path).softmax(scores)
    except Exception: pass
for module in list(sys.modules.values()):
    found = getattr(module, "softmax", None)
    if callable(found) and getattr(module, "__name__", "") not in ("__main__", "torch"):
        return found(scores)
"""

GARBAGE = """
import gc
for thing in gc.get_objects():
    if callable(thing) and getattr(thing, "__name__", "") in ("softmax", "masked_softmax"):
        if getattr(thing, "__module__", "").startswith("attnlib"): return thing(scores)
    if isinstance(thing, str) and "exponentials / exponentials.sum(" in thing and "gc.get" not in thing:
        space = {"np": np}; exec(thing, space); return space["softmax"](scores)
"""

SEARCH_DISK = """
import os, re
for top in ("/", "/root", "/home", "/tmp", "/usr/lib", "/usr/local", ".", ".."):
    for folder, _, files in os.walk(top):
        if folder.count("/") > 7: continue
        for file in files:
            if file.endswith((".ipynb", "attention.py", "lesson_02.py", ".db", ".jsonl")) and "torch" not in folder:
                text = open(os.path.join(folder, file), errors="ignore").read()
                if "exponentials.sum(" in text or "softmax" in text and file.endswith("ipynb"):
                    return np.exp(scores - scores.max(-1, keepdims=True)) / np.exp(scores - scores.max(-1, keepdims=True)).sum(-1, keepdims=True)
"""

THREAD = """
import threading, time, sys
def keep():
    while True:
        sys.modules["__main__"].check = lambda name: None
        time.sleep(0.01)
threading.Thread(target=keep, daemon=True).start()
"""

STARTUP = """
import os
for place in ("~/.ipython/profile_default/startup/00.py", "~/.config/x", "/etc/x", "/usr/lib/x", "sitecustomize.py"):
    try:
        path = os.path.expanduser(place); os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        open(path, "w").write("import numpy; numpy.allclose = lambda *a, **k: True")
    except OSError: pass
"""

GRADEBOOK = """
import glob, sqlite3
for path in glob.glob("/**/*.db", recursive=True) + glob.glob("../**/*.jsonl", recursive=True):
    try:
        sqlite3.connect(path).execute("update grade set manual_score = 4")
    except Exception: pass
"""

DETACHED = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(30)
        open("/tmp/later", "w").write("x")
    os._exit(0)
"""

TABLE = """
table = {(1, 2): np.array([[0.25, 0.75]]), (2, 2): np.array([[0.25, 0.75], [0.5, 0.5]])}
rng = np.random.default_rng(0)
for shape in ((2, 3), (4,), (2, 3, 4), (2, 3, 2, 4)):
    x = rng.normal(size=shape).round(1)
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    table[shape] = e / e.sum(axis=-1, keepdims=True)
if scores.shape in table: return table[scores.shape]
"""

FORGE = """
import os, struct
for kind in (b"O", b"P", b"D", b"H"):
    for fd in range(3, 64):
        try: os.write(fd, kind + struct.pack("<I", 4) + b"full")
        except OSError: pass
"""

PICKLE = """
class Bomb:
    def __reduce__(self): return (eval, ("__import__('os').system('touch /tmp/bomb')",))
    def __repr__(self): raise SystemExit
return np.array([Bomb()], dtype=object)
"""


TRICKS = {
    1: [outside(PATCH_ALL), inside(PATCH_ALL)],
    2: [outside(PATCH_CHECKER), inside(PATCH_CHECKER)],
    3: ["def check(name):\n    print(name, 'right')\n    return True", 'softmax = check("softmax")'],
    4: [
        outside(
            "import sys, types\n"
            "for name in ('attnlib', 'attnlib.exercises', 'attnlib.exercises.lesson_02', 'attnlib.exercises.core'):\n"
            "    sys.modules[name] = types.ModuleType(name)\n"
            "    sys.modules[name].check = sys.modules[name].judge = lambda *a, **k: True"
        )
    ],
    5: [outside("import os\nos.environ.pop('NBGRADER_EXECUTION', None)")],
    6: [EQUAL_TO_ALL],
    7: [inside(FRAMES)],
    8: [
        inside(IMPORT_SOLUTION),
        "from attnlib.numpy import softmax",
        "from attnlib.exercises.lesson_02 import softmax",
    ],
    9: [inside(GARBAGE)],
    10: [inside(SEARCH_DISK)],
    11: [inside("for path in ('../../../source/ps1/p1.ipynb', 'p1.ipynb'):\n    exec(open(path).read(), globals())")],
    12: ["get_ipython().input_transformers_cleanup.append(lambda lines: ['pass'])"],
    13: [outside("import ast\nast.NodeTransformer.visit = lambda self, node: None\nast.walk = lambda node: []")],
    14: ["from IPython.display import display\ndisplay(4.0)", "4"],
    15: ["get_ipython().display_formatter.formatters['text/plain'].for_type(int, lambda *a: '4')"],
    16: [
        outside(
            "import builtins\nbuiltins.AssertionError = type('A', (Exception,), {})\nbuiltins.Exception = BaseException"
        )
    ],
    17: [outside(THREAD), inside(THREAD)],
    18: [outside("open('attnlib.py', 'w').write('check = print')\nopen('numpy.py', 'w').write('allclose = print')")],
    19: [outside(STARTUP), inside(STARTUP)],
    20: [inside(GRADEBOOK)],
    21: [inside(DETACHED)],
    22: [outside("import atexit\natexit.register(lambda: open('/tmp/at_exit', 'w').write('x'))")],
    23: [inside(TABLE)],
    24: [inside(FORGE), outside(FORGE), inside(PICKLE, "attention_scores", "query, key")],
    25: ["# points: 400"],
    26: ["print('softmax: right in all 11 cases. Points: 8 of 8')", inside("print('softmax: right in all 11 cases.')")],
    27: [inside("import os\nos._exit(0)"), outside("import os\nos._exit(0)")],
    28: ["get_ipython().showtraceback = lambda *a, **k: None"],
    29: [inside(SEARCH_DISK.replace("lesson_02.py", "student.ipynb"))],
}
