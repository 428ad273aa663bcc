"""The loop: batches, rate, clipping; and that a training that was killed ends like one that was not."""

import math
import subprocess
import sys
import time

import pytest

torch = pytest.importorskip("torch")

from attnlib.torch import training  # noqa: E402
from attnlib.torch.models import BagOfEmbeddings, ReviewClassifier  # noqa: E402
from attnlib.torch.training import Settings, Texts, batches, evaluate, rate_at, train, train_step  # noqa: E402

# A program that trains for a while: half of the texts hold word 2, the others word 3.
PROGRAM = """
import sys, torch
from attnlib.torch.models import ReviewClassifier
from attnlib.torch.training import Settings, Texts, train
torch.set_num_threads(1)
generator = torch.Generator().manual_seed(0)
ids = [[2 + i % 2, *torch.randint(4, 20, (3 + i % 7,), generator=generator).tolist()] for i in range(160)]
texts, settings = Texts(ids, [i % 2 for i in range(160)]), Settings(epochs=6, batch_size=8, rate=3e-3)
torch.manual_seed(1)
model = ReviewClassifier(20, d_model=8, n_heads=2, dropout=0.2, word_dropout=0.1)
"""


def prepared():
    space = {}
    exec(PROGRAM, space)
    return space["model"], space["texts"], space["settings"]


def weights(model):
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def test_it_learns():
    model, texts, settings = prepared()
    before = evaluate(model, texts)
    history = train(model, texts, settings, seed=0)
    after = evaluate(model, texts)
    assert after.accuracy > 0.8 > before.accuracy and after.loss < before.loss
    assert len(history.losses) == len(history.norms) == len(history.rates) == 6 * 20
    assert history.seconds > 0


def test_equal_seeds_give_equal_weights_and_the_global_numbers_are_left_alone():
    ends = []
    for seed in (0, 0, 1):
        model, texts, settings = prepared()
        torch.manual_seed(5)
        train(model, texts, settings, seed=seed)
        ends.append(weights(model))
        assert torch.equal(torch.rand(2), torch.rand(2, generator=torch.Generator().manual_seed(5)))
    assert torch.equal(ends[0], ends[1]) and not torch.equal(ends[0], ends[2])


class Stop(Exception):
    pass


@pytest.mark.parametrize("last", [1, 33, 119])
def test_broken_off_anywhere_it_ends_with_the_weights_of_an_unbroken_run(tmp_path, last):
    model, texts, settings = prepared()
    whole = train(model, texts, settings, seed=3)

    def stop(step, loss):
        if step == last:
            raise Stop

    broken, *_ = prepared()
    with pytest.raises(Stop):
        train(broken, texts, settings, seed=3, checkpoint=tmp_path / "run.pt", every=0.0, report=stop)
    fresh, *_ = prepared()
    history = train(fresh, texts, settings, seed=3, checkpoint=tmp_path / "run.pt")
    assert torch.equal(weights(fresh), weights(model))
    assert history.losses == whole.losses and history.norms == whole.norms
    assert [path.name for path in tmp_path.iterdir()] == ["run.pt"]


def test_killed_at_any_moment_it_goes_on(tmp_path):
    model, texts, settings = prepared()
    train(model, texts, settings, seed=3)
    path = tmp_path / "run.pt"
    call = f"train(model, texts, settings, seed=3, checkpoint={str(path)!r}, every=0.0, report=lambda *_: __import__('time').sleep(0.05))"
    process = subprocess.Popen([sys.executable, "-c", PROGRAM + call])
    deadline = time.monotonic() + 60
    while not path.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.5)
    process.kill()
    process.wait()
    assert path.exists()
    fresh, *_ = prepared()
    train(fresh, texts, settings, seed=3, checkpoint=path)
    torch.testing.assert_close(weights(fresh), weights(model), atol=1e-6, rtol=1e-5)


def test_a_finished_run_is_not_run_again(tmp_path):
    model, texts, settings = prepared()
    train(model, texts, settings, checkpoint=tmp_path / "run.pt")
    fresh, *_ = prepared()
    steps = []
    history = train(fresh, texts, settings, checkpoint=tmp_path / "run.pt", report=lambda *step: steps.append(step))
    assert not steps and len(history.losses) == 120 and torch.equal(weights(fresh), weights(model))


def test_foreign_and_damaged_checkpoints_are_refused_and_change_nothing(tmp_path):
    path = tmp_path / "run.pt"
    model, texts, settings = prepared()
    train(model, texts, Settings(epochs=1, batch_size=80), checkpoint=path)
    small = Settings(epochs=1, batch_size=80)
    fresh, *_ = prepared()
    before = weights(fresh)
    with pytest.raises(ValueError, match="run.pt belongs to another run: rate 0.001 there, 0.002 here"):
        train(fresh, texts, Settings(epochs=1, batch_size=80, rate=2e-3), checkpoint=path)
    with pytest.raises(ValueError, match="another run: seed 0 there, 1 here"):
        train(fresh, texts, small, seed=1, checkpoint=path)
    with pytest.raises(ValueError, match="n_texts 160 there, 10 here"):
        train(fresh, Texts(texts.ids[:10], texts.labels[:10]), small, checkpoint=path)
    turned = Texts(texts.ids, [1 - label for label in texts.labels])
    with pytest.raises(ValueError, match="another run: texts"):
        train(fresh, turned, small, checkpoint=path)
    with pytest.raises(ValueError, match="another model: embedding.weight"):
        train(ReviewClassifier(21, d_model=8, n_heads=2), texts, small, checkpoint=path)
    with pytest.raises(ValueError, match="another model: .* missing here"):
        train(BagOfEmbeddings(20, d_model=8), texts, small, checkpoint=path)
    assert torch.equal(weights(fresh), before)
    torch.save({"weights": torch.ones(2)}, tmp_path / "other.pt")
    with pytest.raises(ValueError, match="other.pt is no checkpoint of this course"):
        train(fresh, texts, small, checkpoint=tmp_path / "other.pt")
    for content in (path.read_bytes()[:500], b"", b"text"):
        (tmp_path / "broken.pt").write_bytes(content)
        with pytest.raises(ValueError, match="broken.pt cannot be read as a checkpoint: .*Try to delete it"):
            train(fresh, texts, small, checkpoint=tmp_path / "broken.pt")


def test_batches_hold_each_text_once_and_texts_of_like_length():
    lengths = torch.randint(1, 400, (1_000,), generator=torch.Generator().manual_seed(0)).tolist()
    made = batches(lengths, 32, torch.Generator().manual_seed(0))
    assert sorted(place for batch in made for place in batch) == list(range(1_000))
    assert made != batches(lengths, 32, torch.Generator().manual_seed(1))
    assert made == batches(lengths, 32, torch.Generator().manual_seed(0))
    padded = sum(len(batch) * max(lengths[place] for place in batch) for batch in made)
    assert padded < 1.25 * sum(lengths)
    firsts = [lengths[batch[0]] for batch in made]
    assert firsts != sorted(firsts)
    assert [lengths[place] for batch in batches(lengths, 32) for place in batch] == sorted(lengths)


def test_the_rate_rises_to_its_peak_never_starts_at_0_and_falls_along_a_cosine():
    settings = Settings(rate=2.0, warm_up=0.1)
    rates = [rate_at(step, 100, settings) for step in range(100)]
    assert rates[0] == pytest.approx(0.2) and rates[9] == rates[10] == 2.0
    assert rates[55] == pytest.approx(1.0) and 0 < rates[99] < 0.01
    assert rate_at(0, 1, settings) == 2.0


def test_a_step_clips_all_gradients_together_and_reports_the_norm_before():
    model, texts, _ = prepared()
    model.dropout = model.word_dropout = 0.0
    ids, lengths = torch.tensor(texts.ids[0])[None], torch.tensor([len(texts.ids[0])])
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    before = weights(model)
    _, norm = train_step(model, optimizer, ids, lengths, torch.tensor([1]), max_norm=0.01)
    assert norm > 0.01 and (weights(model) - before).norm().item() == pytest.approx(0.01, rel=1e-3)


def test_an_evaluation_is_in_the_order_of_the_texts_and_leaves_the_mode():
    model, texts, _ = prepared()
    model.train()
    found = evaluate(model, texts, batch_size=7)
    assert model.training
    again = evaluate(model, texts, batch_size=160)
    torch.testing.assert_close(found.probabilities, again.probabilities, atol=1e-6, rtol=1e-5)
    labels = torch.tensor(texts.labels)
    assert found.accuracy == pytest.approx((found.probabilities.argmax(-1) == labels).double().mean().item())
    assert found.loss == pytest.approx(-found.probabilities[range(160), labels].log().mean().item(), rel=1e-4)
    turned = evaluate(model, Texts(texts.ids[::-1], texts.labels[::-1]))
    torch.testing.assert_close(turned.probabilities.flip(0), found.probabilities, atol=1e-6, rtol=1e-5)


def test_mixed_precision_learns_too_and_keeps_weights_in_float32():
    model, texts, settings = prepared()
    train(model, texts, Settings(epochs=6, batch_size=8, rate=3e-3, bf16=True), seed=0)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert evaluate(model, texts, bf16=True).accuracy > 0.8


def test_nobody_looks_so_nothing_is_printed(capfd):
    model, texts, settings = prepared()
    train(model, texts, Settings(epochs=1))
    assert capfd.readouterr() == ("", "")
    assert math.isfinite(evaluate(model, texts).loss)


def test_a_person_at_a_terminal_sees_a_bar(monkeypatch, capsys):
    from attnlib.torch import progress

    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    assert list(progress.progress(range(3), 0, 3, "steps")) == [0, 1, 2]
    assert "steps:" in capsys.readouterr().err
    assert training.progress is progress.progress


# What a checkpoint may not be, and what cannot be trained on -----------------------------------------------------------


@pytest.mark.parametrize(
    "changed, told",
    [
        ({"n_heads": 4}, r"n_heads 2 there, 4 here"),
        ({"positions": None}, r"positions 'SinusoidalPositions' there, 'Identity' here"),
        ({"pooling": "max"}, r"pooling 'mean' there, 'max' here"),
        ({"dropout": 0.5}, r"dropout 0.2 there, 0.5 here"),
    ],
)
def test_a_checkpoint_of_another_model_with_equal_shapes_is_refused(tmp_path, changed, told):
    model, texts, _ = prepared()
    small, path = Settings(epochs=1, batch_size=80), tmp_path / "run.pt"
    train(model, texts, small, checkpoint=path)
    made = {"d_model": 8, "n_heads": 2, "dropout": 0.2, "word_dropout": 0.1} | changed
    other = ReviewClassifier(20, **made)
    before = weights(other)
    with pytest.raises(ValueError, match=f"run.pt belongs to another model: .*{told}.*Try another path"):
        train(other, texts, small, checkpoint=path)
    assert torch.equal(weights(other), before)


def test_a_checkpoint_with_more_or_less_in_it_says_what(tmp_path):
    model, texts, _ = prepared()
    small, path = Settings(epochs=1, batch_size=80), tmp_path / "run.pt"
    train(model, texts, small, checkpoint=path)
    state = torch.load(path, weights_only=True)
    torch.save(state | {"run": state["run"] | {"momentum": 0.9}}, path)
    with pytest.raises(ValueError, match="another run: momentum 0.9 there, missing here. Try"):
        train(model, texts, small, checkpoint=path)
    del state["run"]
    torch.save(state, path)
    with pytest.raises(ValueError, match="run.pt is not whole: run missing. Try to delete it"):
        train(model, texts, small, checkpoint=path)


def test_a_checkpoint_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    from attnlib.torch import checkpoints

    model, texts, _ = prepared()
    synced = []
    real = checkpoints.os.fsync
    monkeypatch.setattr(checkpoints.os, "fsync", lambda n: (synced.append((tmp_path / "run.pt").exists()), real(n)))
    train(model, texts, Settings(epochs=1, batch_size=160), checkpoint=tmp_path / "run.pt")
    assert synced == [False]


def test_the_fingerprint_is_of_numbers_whatever_holds_them():
    import numpy as np

    plain = training.fingerprint(Texts([[1, 2], [3]], [0, 1]))
    arrays = Texts([np.array([1, 2]), [np.int64(3)]], np.array([0, 1]))
    assert training.fingerprint(arrays) == plain
    assert training.fingerprint(Texts([torch.tensor([1, 2]), (3,)], torch.tensor([0, 1]))) == plain
    assert training.fingerprint(Texts([[1], [2, 3]], [0, 1])) != plain


@pytest.mark.parametrize("work", [lambda model, texts: train(model, texts, Settings()), evaluate])
def test_no_texts_or_no_labels_are_refused(work):
    model, *_ = prepared()
    with pytest.raises(ValueError, match="no texts; expected at least one. Try"):
        work(model, Texts([], []))
    with pytest.raises(ValueError, match="2 texts and 1 labels; expected a label for each. Try"):
        work(model, Texts([[1], [2]], [0]))


def test_a_batch_goes_to_the_device_of_the_model(monkeypatch):
    model, texts, _ = prepared()
    devices = []

    def look(model, optimizer, ids, lengths, labels, max_norm, **options):
        devices.append({tensor.device.type for tensor in (ids, lengths, labels)})
        return 0.0, 0.0

    monkeypatch.setattr(training, "train_step", look)
    monkeypatch.setattr(torch.optim, "AdamW", lambda parameters, **options: torch.optim.SGD(parameters, lr=0.1))
    train(model.to("meta"), texts, Settings(epochs=1, batch_size=160))
    assert devices == [{"meta"}]
