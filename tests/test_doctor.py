"""The doctor names the fault of every patient, finds nothing in healthy layers, and says what is true of PyTorch's own."""

import functools
import importlib.util
import json
import random
import re
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from attnlib import doctor  # noqa: E402
from attnlib import torch as in_torch  # noqa: E402
from attnlib.doctor.faults import FAULTS, LESSONS  # noqa: E402

ROOT = Path(__file__).parents[1]


def load_patients():
    """The folder beside this file as a package: tests are no package, and must not shadow NumPy."""
    folder = Path(__file__).with_name("patients")
    spec = importlib.util.spec_from_file_location(
        "patients", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    sys.modules["patients"] = package = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package)
    return package


PACKAGE = load_patients()
PATIENTS, HEALTHY, BASE = PACKAGE.PATIENTS, PACKAGE.HEALTHY, sys.modules["patients.base"]


def failures(report):
    return [item for item in report.not_examined if "doctor itself failed" in item.reason]


@pytest.mark.parametrize("name", PATIENTS)
def test_every_patient_is_named_first_with_a_number_and_a_lesson(name):
    patient = PATIENTS[name]
    torch.manual_seed(0)
    report = doctor.examine(patient.make(), **patient.options)
    first = report.findings[0]
    assert first.fault == patient.expected
    assert re.search(patient.number, first.seen)
    text = str(report)
    assert first.fault in text.splitlines()[2]
    assert f"lesson {first.lesson:02d} ({LESSONS[first.lesson]})" in text
    assert not failures(report)


def test_at_least_thirty_patients_come_from_the_bank_with_their_source():
    banked = [patient for patient in PATIENTS.values() if patient.bank]
    assert len({patient.bank for patient in banked}) >= 30
    assert all(re.fullmatch(r"[a-z]{2}\d\d", patient.bank) for patient in banked)
    assert all(patient.source.startswith("http") for patient in banked if patient.bank != "pe24")  # of no known thread


def test_the_bank_says_the_same_of_the_patients_that_it_holds():
    import yaml

    texts = [file.read_text(encoding="utf-8") for file in (ROOT / "tests" / "exercises" / "bank").glob("*.yaml")]
    bank = {entry["id"]: entry for text in texts for entry in yaml.safe_load(text)}
    for name, patient in PATIENTS.items():
        if patient.bank in bank and patient.source:
            assert bank[patient.bank]["source"] == patient.source, name


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", HEALTHY)
def test_nothing_is_found_in_a_healthy_layer(name, seed):
    make, options = HEALTHY[name]
    torch.manual_seed(seed)
    report = doctor.examine(make(), seed=seed, **options)
    assert report.findings == []
    assert not failures(report)
    assert len(report.passed) >= 5


@pytest.mark.parametrize("d_model, n_heads", [(8, 2), (9, 3), (6, 1), (14, 7), (7, 1), (64, 8)])
def test_healthy_and_sick_at_other_sizes(d_model, n_heads):
    for make in (BASE.Attention, BASE.Block, in_torch.MultiHeadAttention, in_torch.EncoderLayer, in_torch.DecoderLayer):
        torch.manual_seed(0)
        report = doctor.examine(make(d_model, n_heads))
        assert report.healthy and not failures(report), report
    plain = {
        name: each for name, each in PATIENTS.items() if getattr(each.make, "__init__", None) is BASE.Attention.__init__
    }
    assert len(plain) > 20
    for name, patient in plain.items():
        if n_heads == 1 and "heads" in name:
            continue  # one head: nothing to mix up
        torch.manual_seed(0)
        report = doctor.examine(patient.make(d_model, n_heads), **patient.options)
        assert report.findings[0].fault == patient.expected, (name, report)


def test_faults_are_lessons_with_a_meaning():
    for name, fault in FAULTS.items():
        assert fault.lesson in LESSONS and len(fault.meaning) > 20 and fault.severity in ("fault", "warning"), name


# PyTorch's own layers


def empty_row(layer, **masks):
    x = torch.randn(2, 5, 8, dtype=torch.float64)
    with torch.no_grad():
        result = layer(*[x] * (3 if isinstance(layer, nn.MultiheadAttention) else 1), **masks)
    return (result[0] if isinstance(result, tuple) else result)[0]


@pytest.mark.parametrize("batch_first", [True, False])
def test_of_multihead_attention_only_what_is_true(batch_first):
    layer = nn.MultiheadAttention(8, 2, dropout=0.1, batch_first=batch_first)
    report = doctor.examine(layer)
    assert [finding.fault for finding in report.findings] == ["fully masked row gives NaN"]
    (finding,) = report.findings
    assert (
        "100% of its result is NaN" in finding.seen and "PyTorch's own layer" in finding.meaning and finding.lesson == 4
    )
    wrapped = nn.Sequential(PATIENTS["fully masked row is NaN"].make())
    report = doctor.examine(wrapped, call=lambda layer, x, mask: layer[0](x, mask))
    assert report.findings[0].meaning.startswith("softmax of a row")  # its own fault, not PyTorch's
    padding = torch.zeros(2, 5, dtype=torch.bool)
    padding[0] = True
    layer = nn.MultiheadAttention(8, 2, batch_first=True, dtype=torch.float64).eval()
    assert empty_row(layer, key_padding_mask=padding).isnan().all()


def test_of_the_encoder_layer_the_fast_path_gives_nan_and_the_other_does_not():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dtype=torch.float64).eval()
    padding = torch.zeros(2, 5, dtype=torch.bool)
    padding[0] = True
    assert empty_row(layer, src_key_padding_mask=padding).isnan().all()
    with torch.enable_grad():
        assert layer(torch.randn(2, 5, 8, dtype=torch.float64), src_key_padding_mask=padding).isfinite().all()
    (finding,) = doctor.examine(layer).findings
    assert finding.fault == "fully masked row gives NaN"
    assert "100% of its result is NaN; with gradients on, 0%" in finding.seen and "fast one" in finding.meaning


def test_of_stacks_and_decoders():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    report = doctor.examine(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False))
    assert [finding.fault for finding in report.findings] == ["fully masked row gives NaN"]
    decoder = doctor.examine(nn.TransformerDecoderLayer(8, 2, 16))
    assert {finding.fault for finding in decoder.findings} <= {"fully masked row gives NaN"}
    assert not failures(report) and not failures(decoder)
    both = doctor.examine(nn.Transformer(8, 2, 1, 1, 16, batch_first=True))
    assert {finding.fault for finding in both.findings} <= {"fully masked row gives NaN"}
    assert "masks of the source" in [item.probe for item in both.not_examined]


# What must not happen


def test_module_and_random_states_are_left_alone():
    layer = in_torch.EncoderLayer(8, 2, dropout=0.3)
    layer.register_forward_hook(lambda *_: None)
    layer.train()
    before = {name: value.clone() for name, value in layer.state_dict().items()}
    kinds = {name: value.dtype for name, value in layer.state_dict().items()}
    random.seed(1), np.random.seed(1), torch.manual_seed(1)  # noqa: NPY002
    states = random.getstate(), np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    doctor.examine(layer)
    assert layer.training and all(parameter.grad is None for parameter in layer.parameters())
    assert {name: value.dtype for name, value in layer.state_dict().items()} == kinds
    assert all(torch.equal(value, before[name]) for name, value in layer.state_dict().items())
    assert random.getstate() == states[0]
    assert (np.random.get_state()[1] == states[1]).all()  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), states[2])
    assert torch.is_grad_enabled() and torch.get_default_dtype() == torch.float32


def test_the_same_report_twice():
    layer = BASE.Attention()
    assert doctor.examine(layer).to_dict() == doctor.examine(layer).to_dict()


class Raises(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        raise KeyError("the layer's own words")


class Odd(nn.Module):
    def __init__(self, result):
        super().__init__()
        self.result = result

    def forward(self, x):
        return self.result


@pytest.mark.parametrize(
    "layer, said",
    [
        (Raises(), "the layer's own words"),
        (Odd(None), "returned NoneType"),
        (Odd("text"), "returned str"),
        (Odd(torch.zeros(2)), "returned shape [2]"),
        (nn.Sequential(nn.Embedding(10, 8), BASE.Attention(8, 2)), "indices"),
        (lambda query, key, value: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_a_layer_that_cannot_be_called_is_a_finding(layer, said):
    report = doctor.examine(layer)
    assert report.findings[0].fault == "the layer raises" and said in report.findings[0].seen
    assert len(report.not_examined) >= 15 and all(item.remedy for item in report.not_examined)


class OnlySometimes(nn.Module):
    """Stops for a batch of one."""

    def __init__(self):
        super().__init__()
        self.inner = BASE.Attention(8, 2)

    def forward(self, x):
        if len(x) == 1:
            raise RuntimeError("needs 2")
        return self.inner(x)


def test_what_it_raises_later_costs_one_probe_only():
    report = doctor.examine(OnlySometimes())
    assert [finding.fault for finding in report.findings] == ["batch size matters"]
    assert "RuntimeError: needs 2" in report.findings[0].seen and len(report.passed) > 8


@pytest.mark.parametrize(
    "layer, options, words",
    [
        (
            nn.MultiheadAttention,
            {},
            ["is the class MultiheadAttention", "expected an instance", "Try MultiheadAttention("],
        ),
        (torch.zeros(2, 3), {}, ["layer is Tensor", "expected a module or a function", "doctor.weights"]),
        (BASE.Attention(), {"d_model": 0}, ["d_model=0", "at least 1", "Try d_model="]),
        (BASE.Attention(), {"n": 2}, ["n=2", "at least 5"]),
        (BASE.Attention(), {"batch": True}, ["batch=True", "at least 2"]),
        (
            BASE.Attention(),
            {"mask": "true"},
            ["mask='true'", "'may attend', 'ignore', 'keep 1', 'additive'", "Try mask="],
        ),
        (BASE.Attention(), {"batch_first": "no"}, ["batch_first='no'", "True, False, or None"]),
        (BASE.Attention(), {"causal": "yes"}, ["causal='yes'", "True, False, or None"]),
        (BASE.Attention(), {"call": lambda layer: 1}, ["takes 1 arguments", "(layer, x, mask)", "Try call="]),
        (lambda: 1, {}, ["takes no arguments"]),
    ],
)
def test_bad_arguments_say_given_expected_and_what_to_try(layer, options, words):
    with pytest.raises(ValueError) as error:
        doctor.examine(layer, **options)
    assert all(word in str(error.value) for word in words), error.value


def test_an_examination_takes_under_two_seconds():
    start = time.perf_counter()
    doctor.examine(in_torch.Encoder(2, 64, 4, dropout=0.1))
    assert time.perf_counter() - start < 2


def test_an_import_brings_no_other_part_of_attnlib():
    code = "import sys, attnlib.doctor; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    others = {"attnlib.exercises", "attnlib.numpy", "attnlib.torch", "attnlib.plots", "matplotlib", "pandas", "IPython"}
    assert "torch" in loaded and not others & set(loaded)


def test_nothing_else_of_attnlib_imports_the_doctor():
    for file in (ROOT / "attnlib").rglob("*.py"):
        if file.parent.name != "doctor":
            assert not re.search(r"(from|import) attnlib(\.| import )doctor", file.read_text(encoding="utf-8")), file


# Other ways to call it


def test_call_overrides_everything_and_tells_the_convention():
    layer, cross = BASE.Attention(8, 2).double(), in_torch.MultiHeadAttention(8, 2)
    calls = [
        lambda layer, query, context, mask: layer(query, context, mask=mask),
        lambda layer, query, key, value, mask: layer(query, key, value, mask, return_weights=True),
    ]
    assert all(doctor.examine(cross, call=call).healthy for call in calls)
    assert doctor.examine(layer, d_model=8, call=lambda layer, x: layer(x)).healthy
    inverted = doctor.examine(layer, d_model=8, call=lambda layer, x, mask: layer(x, None if mask is None else ~mask))
    assert inverted.findings[0].fault == "mask inverted"


def test_what_torch_compile_returns_is_examined_as_what_it_was_made_from():
    def compiled(x):
        raise AssertionError

    compiled._orig_mod = BASE.Attention()
    report = doctor.examine(compiled)
    assert report.healthy and report.name == "Attention"


def test_positions_are_judged_only_when_stated():
    layer = PACKAGE.healthy.Wrapped()
    assert doctor.examine(layer).healthy
    assert doctor.examine(layer, positions=False).findings[0].fault == "order matters"
    assert any("matters" in item.seen for item in doctor.examine(layer).passed)


def test_a_layer_on_another_dtype_and_a_function_in_float32_only():
    assert doctor.examine(BASE.Attention(8, 2).bfloat16()).healthy
    report = doctor.examine(lambda query, key, value: in_torch.scaled_dot_product_attention(query, key, value.float()))
    assert any("float32" in line for line in report.assumed)


# The report


class TargetMask(PACKAGE.written.DecoderFirst):
    """The mask of the target is the only one that is given."""

    def forward(self, tgt, memory, tgt_mask=None):
        tgt = self.norm1(tgt + self.self_attn(tgt, tgt, tgt, attn_mask=tgt_mask)[0])
        return self.norm2(tgt + self.multihead_attn(tgt, memory, memory)[0])


class SequenceFirst(nn.Module):
    """[n, batch, d] with masks, a residual and a norm."""

    def __init__(self, d_model=12):
        super().__init__()
        self.attention, self.norm = nn.MultiheadAttention(d_model, 4), nn.LayerNorm(d_model)

    def forward(self, src, src_mask=None, src_key_padding_mask=None):
        masks = {"attn_mask": src_mask, "key_padding_mask": src_key_padding_mask}
        return self.norm(src + self.attention(src, src, src, **masks)[0])


@pytest.mark.parametrize("make", [SequenceFirst, TargetMask])
def test_a_layer_of_sequences_first_is_known_by_what_it_holds(make):
    report = doctor.examine(make())
    assert {finding.fault for finding in report.findings} <= {"fully masked row gives NaN"}  # which PyTorch's own gives
    assert not failures(report)
    assert any("given as [n, batch, d_model]" in line and "batch_first=True" in line for line in report.assumed)
    stated = doctor.examine(make(), batch_first=False)
    assert [each.fault for each in stated.findings] == [each.fault for each in report.findings]
    assert any("[n, batch, d_model], as stated" in line for line in stated.assumed)


def test_attention_over_the_batch_is_one_finding_and_none_once_it_is_stated():
    layer = PACKAGE.written.BmmHeads()  # declares nothing
    report = doctor.examine(layer)
    assert [finding.fault for finding in report.findings] == ["attention over the batch"]
    assert "batch_first=False" in report.findings[0].meaning
    assert sum("pass batch_first=False" in item.remedy for item in report.not_examined) == 2
    assert doctor.examine(layer, batch_first=False).healthy


def test_a_layer_that_turns_its_axes_itself_stays_batch_first():
    layer = SequenceFirst()
    turned = doctor.examine(layer, d_model=12, call=lambda layer, x: layer(x.transpose(0, 1)).transpose(0, 1))
    assert turned.healthy and not any("[n, batch, d_model]" in line for line in turned.assumed)


def test_an_output_that_cannot_be_found_is_not_examined():
    class Returned:
        __slots__ = ()

    class Layer(BASE.Attention):
        def forward(self, x):
            return Returned()

    report = doctor.examine(Layer())
    assert report.healthy and not report.passed[1:]
    assert all("it returned Returned" in item.reason and "call=" in item.remedy for item in report.not_examined)


class Says(BASE.Attention):
    def forward(self, x):
        print("here")
        print("there", file=sys.stderr)
        return super().forward(x)


class Ends(BASE.Attention):
    def forward(self, x):
        raise self.error


def test_what_a_layer_prints_is_not_shown(capsys):
    doctor.examine(Says())
    assert capsys.readouterr() == ("", "")


def test_a_layer_that_ends_the_program_is_a_finding_an_interrupt_is_not():
    layer = Ends()
    layer.error = SystemExit(3)
    report = doctor.examine(layer)
    assert report.findings[0].fault == "the layer raises" and "SystemExit: 3" in report.findings[0].seen
    layer.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        doctor.examine(layer)


@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad])
def test_the_mode_around_an_examination_makes_no_difference(mode):
    report = doctor.examine(BASE.Attention())
    with mode():
        assert doctor.examine(BASE.Attention()).healthy
        assert torch.is_inference_mode_enabled() == (mode is torch.inference_mode) and not torch.is_grad_enabled()
    assert any(item.probe == "gradients" for item in report.passed) and not torch.is_inference_mode_enabled()


def test_a_partial_has_the_name_and_the_masks_that_it_leaves_open():
    report = doctor.examine(functools.partial(torch.nn.functional.scaled_dot_product_attention, is_causal=True))
    assert report.name == "scaled_dot_product_attention" and any("It is causal" in line for line in report.assumed)
    open_mask = functools.partial(BASE.Attention.forward, BASE.Attention())
    assert any("Mask mask" in line for line in doctor.examine(open_mask, d_model=12).assumed)


def test_rotary_is_told_where_it_is_seen_and_not_spoken_of_elsewhere():
    (line,) = [item.seen for item in doctor.examine(HEALTHY["rotary"][0]()).passed if item.probe == "rotary"]
    assert "alike" in line
    grid = doctor.examine(PACKAGE.written.OnAGrid(), n=16)
    assert [item for item in grid.passed if item.probe == "rotary"]
    for name in ("T5's buckets", "queries of length 1, with places", "slopes by distance", "small attention"):
        report = doctor.examine(HEALTHY[name][0]())
        assert not any(item.probe == "rotary" for item in report.passed + report.not_examined), name
    one_side = doctor.examine(PACKAGE.axes.QueryTurned()).findings[0].seen
    assert "only the queries are turned" in one_side
    assert "only" not in doctor.examine(PACKAGE.axes.PairsDiffer()).findings[0].seen


def test_a_closed_gate_is_told_from_attention_over_nothing():
    report = doctor.examine(PACKAGE.written.ZeroLast())
    assert report.healthy and any("a gate is closed" in item.reason for item in report.not_examined)
    (finding,) = doctor.examine(PACKAGE.axes.Forgotten()).findings[:1]
    assert finding.severity == "warning"


class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.text, self.scopes = [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.scopes += [value for name, value in attributes if name == "scope"]

    def handle_data(self, data):
        self.text.append(data)


def test_html_has_headings_real_tables_and_no_colour_that_means_something():
    report = doctor.examine(PATIENTS["no scaling"].make())
    html = report._repr_html_()
    page = Page()
    page.feed(html)
    assert {"h3", "h4", "table", "thead", "tbody", "th", "td"} <= set(page.tags)
    assert {"col", "row"} == set(page.scopes)
    text = " ".join(page.text)
    for part in (report.findings[0].fault, report.findings[0].severity, report.findings[0].seen, "lesson 03"):
        assert part in text
    assert not re.search(r"#[0-9a-f]{3,6}|rgb\(|background:(?!none)", html)


def test_html_escapes_what_a_layer_says():
    class Layer(Raises):
        def forward(self, x):
            raise ValueError("<script>")

    assert "<script>" not in doctor.examine(Layer())._repr_html_()


def test_data_goes_through_json_and_text_fits_a_terminal():
    report = doctor.examine(PATIENTS["batch norm"].make())
    data = json.loads(json.dumps(report.to_dict()))
    assert data["healthy"] is False and data["findings"][0]["lesson"] == 9
    assert set(data["findings"][0]) == {"fault", "probe", "severity", "seen", "meaning", "lesson"}
    assert max(map(len, str(report).splitlines())) <= 100
    assert repr(report) == str(report)


README = """\
1. FAULT: heads split without transpose
   Seen: the 4 heads hold the numbers of other tokens: [3, 4, 7, 3] was filled row by row
   Usually: view(batch, heads, n, d_head) alone hands each head some whole tokens instead of a part
     of every token. Use view(batch, n, heads, d_head).transpose(1, 2).
   Explained in lesson 05 (Multi-head attention).
"""


def test_the_text_that_the_readme_shows():
    torch.manual_seed(0)
    report = doctor.examine(PATIENTS["heads by view alone"].make(), mask="may attend")
    assert str(report).startswith(f"ViewOnly: 2 findings; 11 probes passed, 4 not made.\n\n{README}")
    assert README in (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_what_was_not_examined_says_why_and_how():
    report = doctor.examine(BASE.Attention())
    missing = {item.probe: item for item in report.not_examined}
    assert "dropout=0.5" in missing["dropout in training"].remedy
    assert "block" in missing["residual connections"].remedy


# Maps


def softmax(scores):
    exps = np.exp(scores - scores.max(-1, keepdims=True))
    return exps / exps.sum(-1, keepdims=True)


def test_maps_head_by_head(rng):
    scores = rng.normal(size=(2, 6, 5, 5)) * 2
    scores[:, 1] = 0  # uniform
    scores[:, 2] = 1000 * np.eye(5)  # one-hot
    scores[:, 3] = [9, 0, 0, 0, 0]  # one token
    scores[:, 4] = [0.3, 0, 1, 0, 0.5]  # dead
    scores[:, 5] = scores[:, 0]
    report = doctor.weights(softmax(scores))
    named = {finding.fault: finding for finding in report.findings}
    assert set(named) == {
        "head 1 is uniform",
        "head 2 is one-hot",
        "head 3 looks at one token",
        "head 4 is dead",
        "heads 0 and 5 are the same",
    }
    assert "entropy 2.32 bits, 100% of uniform" in named["head 1 is uniform"].seen
    assert "100% of rows saturated" in named["head 2 is one-hot"].seen
    assert "token 0 (1.00)" in named["head 3 looks at one token"].seen
    assert all(finding.severity == "warning" for finding in report.findings)
    assert "head 0" in [item.probe for item in report.passed]
    assert json.dumps(report.to_dict()) and "lesson 03" in str(report) and "<table>" in report._repr_html_()


@pytest.mark.parametrize(
    "change, fault",
    [
        (lambda maps: maps.swapaxes(-1, -2), "rows do not sum to 1"),
        (lambda maps: maps - 1, "rows do not sum to 1"),
        (lambda maps: maps * np.nan, "not finite"),
    ],
)
def test_what_is_no_map(rng, change, fault):
    report = doctor.weights(change(softmax(rng.normal(size=(2, 3, 5, 5)))))
    assert [finding.fault for finding in report.findings] == [fault]


def test_maps_with_a_mask_and_as_tensors(rng):
    causal = np.tril(np.ones((6, 6), bool))
    scores = torch.tensor(rng.normal(size=(2, 3, 6, 6)))
    maps = in_torch.masked_softmax(scores, torch.tensor(causal)).requires_grad_()
    assert doctor.weights(maps, causal).healthy
    assert doctor.weights(maps[0, 0], torch.tensor(causal)).healthy
    uniform = np.where(causal, 1 / causal.sum(-1, keepdims=True), 0)
    assert doctor.weights(uniform, causal).findings[0].fault == "head 0 is uniform"
    assert doctor.weights(softmax(scores.numpy()), causal).findings[0].fault == "weight on masked keys"


@pytest.mark.parametrize(
    "maps, mask, words",
    [
        (np.ones(3), None, ["[3]", "[..., n_query, n_key]", "Try"]),
        (np.ones((3, 3), int), None, ["int64"]),
        (np.eye(3), np.ones((2, 2), bool), ["mask has shape [2, 2]", "[3, 3]", "Try"]),
        (np.eye(3), np.ones((3, 3)), ["dtype float64", "booleans"]),
    ],
)
def test_maps_of_another_kind_are_refused(maps, mask, words):
    with pytest.raises(ValueError) as error:
        doctor.weights(maps, mask)
    assert all(word in str(error.value) for word in words), error.value


# Layers and models of Hugging Face ------------------------------------------------------------------------------------

SMALL = {"hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 2, "intermediate_size": 64, "vocab_size": 50}


@pytest.fixture(scope="module")
def transformers():
    found = pytest.importorskip("transformers")
    torch.manual_seed(0)
    return found


def faults(report):
    return [finding.fault for finding in report.findings]


def test_layers_that_could_have_a_context_and_have_none_are_examined_without(transformers):
    from transformers.models.bert.modeling_bert import BertLayer
    from transformers.models.gpt2.modeling_gpt2 import GPT2Block

    gpt = transformers.GPT2Config(n_embd=32, n_head=4, n_layer=2, vocab_size=50, attn_implementation="eager")
    bert = transformers.BertConfig(**SMALL, attn_implementation="eager")
    for layer in (BertLayer(bert), GPT2Block(gpt, layer_idx=0)):
        report = doctor.examine(layer)
        assert faults(report) == ["fully masked row gives NaN"] and not failures(report)  # of −inf, which is added
        assert len(report.passed) >= 13 and "`hidden_states`" in report.assumed[0]
        assert any("attention_mask: [batch, 1, 1, n_key], added to the scores" in line for line in report.assumed)


def test_whole_models_are_given_vectors_in_place_of_ids(transformers):
    llama = transformers.LlamaConfig(**SMALL, num_key_value_heads=2)
    gpt = transformers.GPT2Config(n_embd=32, n_head=4, n_layer=2, vocab_size=50, bos_token_id=0, eos_token_id=0)
    for model, causal in ((transformers.LlamaModel(llama), True), (transformers.GPT2Model(gpt), True)):
        report = doctor.examine(model, causal=causal)
        assert report.healthy and not failures(report), report
        assert "`inputs_embeds`" in report.assumed[0] and len(report.passed) >= 13
    report = doctor.examine(transformers.BertModel(transformers.BertConfig(**SMALL)))
    (finding,) = report.findings  # what is returned first does not hang on the pooler
    assert finding.seen == "2 of 38 parameters get none: `pooler.dense.weight`, `pooler.dense.bias`"


def test_a_dropout_whose_rate_is_read_elsewhere_is_used_and_one_that_is_not_is_not():
    class Functional(BASE.Attention):
        def __init__(self, reads):
            super().__init__()
            self.attn_dropout, self.after, self.reads = nn.Dropout(0.3), nn.Dropout(0.1), reads

        def forward(self, x, mask=None):
            rate = self.attn_dropout.p if self.reads else 0.0
            x = torch.nn.functional.dropout(x, rate, self.training)
            return self.after(super().forward(x, mask))

    assert doctor.examine(Functional(reads=True)).healthy
    (finding,) = doctor.examine(Functional(reads=False)).findings
    assert finding.seen == "1 of 2 dropouts are never called: `attn_dropout`"


def test_what_the_call_left_out_is_said_and_the_remedy_works(transformers):
    from transformers.models.llama.modeling_llama import LlamaDecoderLayer

    layer = LlamaDecoderLayer(transformers.LlamaConfig(**SMALL, num_key_value_heads=2), 0)
    report = doctor.examine(layer)
    (finding,) = report.findings
    assert "no fault of the layer" in finding.meaning
    assert "call=lambda layer, x: layer(x, position_embeddings=...)" in finding.meaning
    assert " ".join(str(report).split()).count("the layer could not be called") == 1  # all probes on one line

    def turned(layer, x):
        angles = (
            torch.outer(torch.arange(x.shape[1]), 1e4 ** -(torch.arange(0, 8, 2) / 8)).repeat(1, 2)[None].to(x.dtype)
        )
        return layer(x, position_embeddings=(angles.cos(), angles.sin()))

    assert not failures(doctor.examine(layer, call=turned)) and len(doctor.examine(layer, call=turned).passed) > 10


def test_images_are_examined_as_the_remedy_says():
    class OnImages(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = BASE.Attention(8, 2)

        def forward(self, x):
            batch, channels, height, width = x.shape
            return self.inner(x.flatten(2).mT).mT.unflatten(-1, (height, width))

    meaning = doctor.examine(OnImages()).findings[0].meaning
    source = re.search(r"lambda layer, x: layer\(x\.mT.*\.mT", meaning).group()
    report = doctor.examine(OnImages(), n=9, d_model=8, call=eval(source))
    assert report.healthy and len(report.passed) > 10


def test_a_fixed_number_of_tokens_is_found_and_is_said_only_if_it_was_not_given():
    report = doctor.examine(PACKAGE.healthy.InWindows())
    assert "[3, 9, 12]" in report.assumed[0] and faults(report) == ["one number of tokens only"]
    assert report.findings[0].seen.startswith("7 tokens raise") and report.findings[0].severity == "warning"
    assert doctor.examine(PACKAGE.healthy.InWindows(), n=9).healthy


def test_a_first_call_that_may_be_wrong_is_a_warning_and_one_that_was_given_is_a_fault():
    layer = Raises()
    assert doctor.examine(layer).findings[0].severity == "warning"
    assert doctor.examine(layer, call=lambda layer, x: layer(x)).findings[0].severity == "fault"


def test_a_cache_that_is_right_passes_and_one_that_is_not_returned_is_not_examined(transformers):
    from transformers.models.gpt2.modeling_gpt2 import GPT2Block

    report = doctor.examine(PACKAGE.production.WithCache(), causal=True)
    assert report.healthy and any(item.probe == "tokens behind a cache" for item in report.passed)
    gpt = transformers.GPT2Config(n_embd=32, n_head=4, n_layer=2, vocab_size=50, attn_implementation="sdpa")
    report = doctor.examine(GPT2Block(gpt, layer_idx=0), causal=True)
    assert any("no cache is returned" in item.reason for item in report.not_examined)


def test_a_context_that_is_given_by_call_has_its_own_length_and_its_mask_is_not_that_of_the_tokens(transformers):
    from transformers.models.bert.modeling_bert import BertLayer

    small = transformers.BertConfig(**SMALL, is_decoder=True, add_cross_attention=True, attn_implementation="eager")

    def call(layer, query, context, mask):
        fill = torch.finfo(query.dtype).min
        added = None if mask is None else torch.zeros(mask.shape, dtype=query.dtype).masked_fill(~mask, fill)[:, None]
        return layer(query, encoder_hidden_states=context, encoder_attention_mask=added)

    report = doctor.examine(BertLayer(small), call=call)
    assert faults(report) == ["fully masked row is not empty"] and report.findings[0].severity == "warning"
    assert "[3, 5, 32]" in report.assumed[0] and not failures(report)
