"""Which configuration reads reviews best? `make imdb` runs them all and writes results/imdb.csv, a row for each run.

It may be stopped at any moment, and goes on where it was: finished runs are in the file, and of a run that was broken off
there is a checkpoint in build/imdb. Two runs go side by side, with one thread each. Every network gets the same 20,000
reviews, the same number of epochs, the same optimiser and schedule; only what the name says is different. What was tried to
get there is told in lesson 11: only on validation data. To measure all anew, move results/imdb.csv away first.
"""

import argparse
import csv
import multiprocessing
import platform
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import sklearn
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from torch import nn
from tqdm import tqdm

from attnlib.data import reviews
from attnlib.data.text import build_vocabulary, encode
from attnlib.torch.models import BagOfEmbeddings, LSTMClassifier, ReviewClassifier
from attnlib.torch.trained import packed
from attnlib.torch.training import Settings, Texts, evaluate, train

ROOT = Path(__file__).resolve().parent.parent
RESULTS, BUILD = ROOT / "results" / "imdb.csv", ROOT / "build" / "imdb"
RECORDED = ROOT / "attnlib" / "data" / "recorded"
SEEDS = (0, 1, 2)
N_WORDS = 20_000
BUDGET = {"epochs": 2, "batch_size": 32, "rate": 2e-3}
MODEL = {"word_dropout": 0.1, "dropout": 0.1}
STRENGTH = {1: 3.0, 2: 10.0}  # of words, and of words and pairs: the best of 1, 3, 10, 30 on validation data
KEPT = ("bag of embeddings", "TF-IDF, one and two words, whole text", "attention, 4 heads", "best attention")
COLUMNS = (
    "configuration seed epochs length accuracy_validation accuracy_test loss_test seconds wall_seconds parameters "
    "threads python version_numpy version_torch version_sklearn"
).split()


@dataclass(frozen=True)
class Configuration:
    """What one line of the table stands for."""

    make: type[nn.Module] | None = ReviewClassifier  # None: TF-IDF with logistic regression
    length: int = 128  # words of each review; 0: all
    both_ends: bool = False  # a longer review is cut in its middle, not at its end
    n_words: int = N_WORDS
    model: dict = field(default_factory=dict)
    training: dict = field(default_factory=dict)


CONFIGURATIONS = {
    "bag of embeddings": Configuration(BagOfEmbeddings),
    "TF-IDF, one word": Configuration(None),
    "TF-IDF, one and two words": Configuration(None, model={"n": 2}),
    "TF-IDF, one word, whole text": Configuration(None, length=0),
    "TF-IDF, one and two words, whole text": Configuration(None, length=0, model={"n": 2}),
    "LSTM": Configuration(LSTMClassifier),
    "attention without positions": Configuration(model={"positions": None}),
    "attention, 1 head": Configuration(model={"n_heads": 1}),
    "attention, 4 heads": Configuration(),
    "attention, 2 layers": Configuration(model={"n_layers": 2}),
    "attention, post-norm": Configuration(model={"norm_first": False}),
    "attention, CLS": Configuration(model={"pooling": "cls"}),
    "attention, mean and max": Configuration(model={"pooling": "mean_max"}),
    "attention, 64 words": Configuration(length=64),
    "attention, 256 words": Configuration(length=256),
    "attention, bfloat16": Configuration(training={"bf16": True}),
    "best attention": Configuration(length=256, both_ends=True, model={"n_pairs": 100_003}),
    "bag of embeddings, 4 epochs": Configuration(BagOfEmbeddings, training={"epochs": 4}),  # is the budget too small?
    "LSTM, 4 epochs": Configuration(LSTMClassifier, training={"epochs": 4}),
    "attention, 4 heads, 4 epochs": Configuration(training={"epochs": 4}),
}
DATA: dict = {}  # of this process


def load() -> None:
    """Read the reviews into this process, one thread."""
    torch.set_num_threads(1)
    parts = reviews.split(reviews.imdb())
    DATA["tokens"] = {part: [reviews.words(text) for text in of.texts] for part, of in parts.items()}
    DATA["labels"] = {part: of.labels for part, of in parts.items()}
    DATA["vocabularies"] = {}


def tokens(part: str, configuration: Configuration) -> list[list[str]]:
    """The words of each review that a configuration may see."""
    n, found = configuration.length, DATA["tokens"][part]
    if n == 0:
        return found
    if configuration.both_ends:
        return [text if len(text) <= n else text[: n // 2] + text[n // 2 - n :] for text in found]
    return [text[:n] for text in found]


def texts(part: str, configuration: Configuration) -> Texts:
    """The same as ids. The vocabulary is that of the whole training texts."""
    if configuration.n_words not in DATA["vocabularies"]:
        built = build_vocabulary(DATA["tokens"]["train"], max_size=configuration.n_words)
        DATA["vocabularies"][configuration.n_words] = built
    vocabulary = DATA["vocabularies"][configuration.n_words]
    return Texts([encode(text, vocabulary) for text in tokens(part, configuration)], DATA["labels"][part])


def checkpoint_of(name: str, seed: int) -> Path:
    """Where a run keeps what it needs to go on, until its row is written."""
    return BUILD / f"{name}-{seed}.pt".replace(" ", "_")


def run_network(name: str, seed: int) -> tuple[dict, np.ndarray]:
    """Train one network and measure it."""
    configuration = CONFIGURATIONS[name]
    torch.manual_seed(seed)
    model = configuration.make(configuration.n_words, **MODEL | configuration.model)
    settings = Settings(**BUDGET | configuration.training)
    history = train(model, texts("train", configuration), settings, seed=seed, checkpoint=checkpoint_of(name, seed))
    validation, test = (
        evaluate(model, texts(part, configuration), bf16=settings.bf16) for part in ("validation", "test")
    )
    if name == "attention, 4 heads" and seed == 0:
        torch.save(model.state_dict(), BUILD / "classifier.pt")
    measured = {
        "epochs": settings.epochs,
        "accuracy_validation": validation.accuracy,
        "accuracy_test": test.accuracy,
        "loss_test": test.loss,
        "seconds": history.seconds,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
    }
    return measured, test.probabilities[:, 1].numpy()


def run_linear(name: str, seed: int) -> tuple[dict, np.ndarray]:
    """Weigh words, or words and pairs, by how rare they are, and fit one number to each."""
    configuration = CONFIGURATIONS[name]
    started = time.process_time()
    weigh = TfidfVectorizer(analyzer=Pairs(configuration.model.get("n", 1)), min_df=2, sublinear_tf=True)
    train_x = weigh.fit_transform(tokens("train", configuration))
    validation_x, test_x = (weigh.transform(tokens(part, configuration)) for part in ("validation", "test"))
    strength = STRENGTH[configuration.model.get("n", 1)]
    best = LogisticRegression(C=strength, solver="liblinear", random_state=seed).fit(train_x, DATA["labels"]["train"])
    probabilities = best.predict_proba(test_x)[:, 1]
    right = np.where(np.array(DATA["labels"]["test"]) == 1, probabilities, 1 - probabilities)
    measured = {
        "epochs": 0,
        "accuracy_validation": best.score(validation_x, DATA["labels"]["validation"]),
        "accuracy_test": best.score(test_x, DATA["labels"]["test"]),
        "loss_test": -np.log(right).mean(),
        "seconds": time.process_time() - started,
        "parameters": best.coef_.size + 1,
    }
    return measured, probabilities


@dataclass
class Pairs:
    """The words of a review and, for n = 2, the pairs of neighbours."""

    n: int

    def __call__(self, text: list[str]) -> list[str]:
        """From words to features."""
        return text if self.n == 1 else text + [f"{one} {two}" for one, two in zip(text, text[1:])]


def run(job: tuple[str, int]) -> dict:
    """One run, as a row of the file."""
    name, seed = job
    started = time.time()
    measured, probabilities = (run_network if CONFIGURATIONS[name].make else run_linear)(name, seed)
    if name in KEPT and seed == 0:
        np.save(BUILD / f"{name}.npy", probabilities)
    versions = {"python": platform.python_version(), "version_numpy": np.__version__}
    versions |= {"version_torch": torch.__version__.split("+")[0], "version_sklearn": sklearn.__version__}
    row = {
        "configuration": name,
        "seed": seed,
        "length": CONFIGURATIONS[name].length,
        "threads": torch.get_num_threads(),
    }
    measured["wall_seconds"] = time.time() - started
    rounded = {key: round(value, 5 if "accuracy" in key or "loss" in key else 1) for key, value in measured.items()}
    return row | rounded | versions


def finished() -> set[tuple[str, int]]:
    """What is in the file."""
    if not RESULTS.exists():
        return set()
    with RESULTS.open(encoding="utf-8", newline="") as file:
        return {(row["configuration"], int(row["seed"])) for row in csv.DictReader(file)}


def add(row: dict) -> None:
    """Add a row to the file, and keep the order of the configurations: what is written is a whole file each time."""
    rows = [row]
    if RESULTS.exists():
        with RESULTS.open(encoding="utf-8", newline="") as file:
            rows = [*csv.DictReader(file), row]
    order = list(CONFIGURATIONS)
    rows.sort(key=lambda row: (order.index(row["configuration"]), int(row["seed"])))
    RESULTS.parent.mkdir(exist_ok=True)
    part = RESULTS.with_suffix(".part")
    with part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    Path(part).replace(RESULTS)


def record() -> None:
    """Copy into the package what the lesson reads."""
    shutil.copyfile(RESULTS, RECORDED / RESULTS.name)
    if all((BUILD / f"{name}.npy").exists() for name in KEPT):
        load()
        kept = {name: np.load(BUILD / f"{name}.npy").astype(np.float16) for name in KEPT}
        np.savez_compressed(RECORDED / "imdb_test.npz", labels=np.array(DATA["labels"]["test"], np.int8), **kept)
        tokens = list(build_vocabulary(DATA["tokens"]["train"], max_size=N_WORDS))
        classifier = packed(torch.load(BUILD / "classifier.pt"), tokens)
        np.savez_compressed(RECORDED / "review_classifier.npz", **classifier)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", help="names of configurations; all if not given")
    parser.add_argument("--workers", type=int, default=2, help="runs side by side")
    options = parser.parse_args()
    BUILD.mkdir(parents=True, exist_ok=True)
    done = finished()
    jobs = [(name, seed) for seed in SEEDS for name in options.only or CONFIGURATIONS if (name, seed) not in done]
    print(f"{len(done)} runs are there, {len(jobs)} to do.", flush=True)
    with multiprocessing.get_context("spawn").Pool(options.workers, initializer=load) as pool:
        for row in tqdm(pool.imap_unordered(run, jobs), total=len(jobs)):
            add(row)
            checkpoint_of(row["configuration"], row["seed"]).unlink(missing_ok=True)
            tqdm.write(
                f"{row['configuration']:<40} seed {row['seed']}  test {row['accuracy_test']:.4f}  {row['seconds']:.0f} s"
            )
    record()


if __name__ == "__main__":
    main()
