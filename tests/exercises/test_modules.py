"""Exercises on tensors and classes: weights set by name, verdicts on layers that cannot be called, stubs, and side effects."""

import numpy as np
import pytest

from attnlib.exercises.core import Case, Checker, Exercise, Mistake, judge

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from attnlib.exercises.modules import array, build, is_stub, on_tensors, tensor  # noqa: E402


class Mixer(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.query = nn.Linear(d_model, 3)

    def forward(self, x):
        return torch.tanh(self.query(x))


class Stub(nn.Module):
    """Solutions use self.query."""

    def __init__(self, d_model):
        super().__init__()
        # your code here

    def forward(self, x):
        """[..., d_model] -> [..., 3]"""
        return ...  # your code here


class Linear(Mixer):
    def forward(self, x):
        return self.query(x)


class Doubled(Mixer):
    def forward(self, x):
        return torch.tanh(2 * self.query(x))


def call_mixer(Mixer, x, weight, bias):
    if is_stub(Mixer):
        return ...
    layer = build(Mixer, x.shape[-1], weights={"query.weight": weight, "query.bias": bias})
    return on_tensors(layer, x)


def mixer_cases(rng):
    return [
        Case("one token", (np.ones((1, 2)), np.zeros((3, 2)), np.zeros(3)), np.zeros((1, 3), dtype=np.float32)),
        Case("two tokens", tuple(rng.normal(size=shape).round(1) for shape in ((2, 4), (3, 4), (3,)))),
    ]


MIXER = Exercise(
    "Mixer",
    reference=Mixer,
    solution=Mixer,
    cases=mixer_cases,
    mistakes=[Mistake("tanh is missing", Linear, "What bends?"), Mistake("doubled", Doubled, "Half of it.")],
    call=call_mixer,
)


def test_a_class_is_judged_with_weights_set_by_name():
    assert judge(MIXER, Mixer).status == "right"
    verdict = judge(MIXER, Linear)
    assert verdict.mistakes == (MIXER.mistakes[0],) and "What bends?" in verdict.text
    assert "x = torch.tensor([[" in verdict.text and "weight = torch.tensor(" in verdict.text


def test_a_stub_is_not_started():
    assert judge(MIXER, Stub).status == judge(MIXER, Todo).status == "not started"
    assert not is_stub(Mixer)


class WithoutQuery(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.queries = nn.Linear(d_model, 3)

    def forward(self, x):
        return self.queries(x)


class WrongWidth(Mixer):
    def __init__(self, d_model):
        super().__init__(d_model)
        self.query = nn.Linear(d_model, 4)


class WithoutBias(Mixer):
    def __init__(self, d_model):
        super().__init__(d_model)
        self.query = nn.Linear(d_model, 3, bias=False)


class WithoutSuper(nn.Module):
    def __init__(self, d_model):
        self.query = nn.Linear(d_model, 3)

    def forward(self, x):
        return self.query(x)


class NoModule:
    def __init__(self, d_model):
        self.query = nn.Linear(d_model, 3)

    def forward(self, x):
        return self.query(x)


class NoForward(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.query = nn.Linear(d_model, 3)

    def foward(self, x):
        return self.query(x)


class Matrix(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.query = nn.Parameter(torch.zeros(d_model, 3))

    def forward(self, x):
        return x @ self.query


class WithNumPy(Mixer):
    def forward(self, x):
        return np.tanh(self.query(x).detach().numpy())


class InPlace(Mixer):
    def forward(self, x):
        result = torch.tanh(self.query(x))
        x.zero_()
        return result


class InDouble(Mixer):
    def forward(self, x):
        return super().forward(x).double()


class WithItsInput(Mixer):
    def forward(self, x):
        return super().forward(x), x


class WithAComma(Mixer):
    def forward(self, x):
        return (super().forward(x),)


class WithNothing(Mixer):
    def forward(self, x):
        return super().forward(x), None


class AsAList(Mixer):
    def forward(self, x):
        return super().forward(x).tolist()


class NoKernel(Mixer):
    def forward(self, x):
        return nn.ModuleList([self.query])(x)


class Todo(Mixer):
    def forward(self, x):
        raise NotImplementedError("later")


class Crashes(Mixer):
    def forward(self, x):
        return self.qurey(x)


@pytest.mark.parametrize(
    "answer, text",
    [
        (
            WithoutQuery,
            "`self.query` is missing: make it in `__init__`. The check sets `query.weight` through this name.",
        ),
        (WrongWidth, "`query.weight` has shape [4, 2]; expected [3, 2], as nn.Linear(2, 3) has it."),
        (WithoutBias, "`self.query` has no bias; expected one, as nn.Linear makes it."),
        (WithoutSuper, "It raises AttributeError: cannot assign module before Module.__init__() call"),
        (NoModule, "`NoModule` is no layer of PyTorch: write `class NoModule(nn.Module):`."),
        (NoForward, "`NoForward` has no `forward`: is its name right, and is it indented below `class NoForward`?"),
        (Matrix, "`self.query` is of type Parameter, without a `weight`; expected a layer such as nn.Linear."),
        (WithNumPy, "It returns a NumPy array; expected a tensor. Use PyTorch's functions all the way."),
        (InPlace, "it changes its input `x`, which the caller still needs. Work on a copy: `x = x.clone()`."),
        (InDouble, "It returns a tensor of float64; expected float32."),
        (WithItsInput, "It returns a tuple of 2 results; expected one tensor. Is there a comma too many"),
        (WithAComma, "It returns a tuple of one result; expected one tensor."),
        (WithNothing, "It returns a tuple of 2 results; expected one tensor."),
        (AsAList, "It returns a list; expected a tensor. Try torch.tensor(...)."),
        (NoKernel, "It raises NotImplementedError"),
        (Crashes, "in line"),
    ],
)
def test_what_is_unfit_about_a_layer_is_said(answer, text):
    verdict = judge(MIXER, answer)
    assert verdict.status == "not yet" and text in verdict.text


class Careless(Mixer):
    def forward(self, x):
        torch.manual_seed(1)
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)
        return super().forward(x)


def test_a_check_leaves_random_numbers_and_settings_of_the_notebook_alone():
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    judge(MIXER, Careless)
    assert torch.equal(torch.rand(3), expected)
    assert torch.get_default_dtype() == torch.float32 and torch.is_grad_enabled()


@pytest.mark.parametrize("change", [lambda x: x.append(3), lambda x: x.__setitem__(0, 7)])
def test_a_list_that_is_changed_in_place_is_seen(change):
    def answer(sequences, more):
        total = torch.tensor(sum(map(sum, sequences)) + sum(more.values()))
        change(sequences[0])
        return total

    exercise = Exercise(
        "total",
        reference=lambda sequences, more: torch.tensor(sum(map(sum, sequences)) + sum(more.values())),
        solution=lambda sequences, more: torch.tensor(sum(map(sum, sequences)) + sum(more.values())),
        cases=lambda rng: [Case("two lists", ([[1, 2], [4]], {"a": 1}), np.array(8))],
        mistakes=[],
        call=lambda answer, sequences, more: on_tensors(answer, sequences, more),
    )
    assert "it changes its input `sequences`" in judge(exercise, answer).text
    assert judge(exercise, exercise.reference).status == "right"


def test_the_check_wants_a_class_and_gives_tensors_to_play_with(capsys):
    check = Checker("08", [MIXER])
    space = {"check": check, "Mixer": lambda x: x}
    exec('Mixer = check("Mixer")', space)
    assert "`Mixer` is a function; expected a class, `class Mixer(nn.Module)`" in capsys.readouterr().out
    x, weight, bias = check.case("Mixer")
    assert x.dtype == weight.dtype == bias.dtype == torch.float32
    instance = {"check": check, "Mixer": Mixer(2)}
    exec('Mixer = check("Mixer")', instance)
    assert "`Mixer` is a Mixer; expected a class" in capsys.readouterr().out


def test_arrays_and_tensors_are_turned_into_each_other():
    given = (np.ones(2), [np.arange(2)], {"mask": np.array([True])}, "text")
    floats, whole, masks, text = tensor(given)
    assert floats.dtype == torch.float32 and whole[0].dtype == torch.int64 and masks["mask"].dtype == torch.bool
    assert text == "text" and array(...) is ... and array(None) is None
    assert [part.tolist() for part in array((floats, whole[0]))] == [[1, 1], [0, 1]]
