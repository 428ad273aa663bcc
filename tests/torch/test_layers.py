"""Layers equal PyTorch's own in outputs and gradients, take any width, and survive what is done to modules."""

import copy
import io
import shutil

import numpy as np
import pytest

import attnlib.numpy as by_numpy

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from attnlib.torch import (  # noqa: E402
    CrossAttention,
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    FeedForward,
    LayerNorm,
    LearnedPositions,
    MultiHeadAttention,
    SelfAttention,
    SinusoidalPositions,
    alibi_bias,
    causal_mask,
    layer_norm,
    load_torch_weights,
    merge_heads,
    multi_head_attention,
    padding_mask,
    rotary,
    sinusoidal_positions,
    split_heads,
    to_additive,
    to_attn_mask,
    to_key_padding_mask,
)

TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5}
LENGTHS = [3, 5, 1]


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def compare(ours, theirs, inputs, our_call, their_call, dtype, names):
    """Outputs, gradients of the inputs, and gradients of each weight."""
    tolerance = {"rtol": TOLERANCE[dtype], "atol": TOLERANCE[dtype]}
    one, other = our_call(ours), their_call(theirs)
    assert torch.allclose(one, other, **tolerance)
    towards = torch.randn_like(one)
    for output, module in ((one, ours), (other, theirs)):
        module.zero_grad()
        module.found = torch.autograd.grad(output, [*inputs, *module.parameters()], towards)
    for mine, its in zip(ours.found[: len(inputs)], theirs.found[: len(inputs)]):
        assert torch.allclose(mine, its, **tolerance)
    our_gradients = dict(zip(dict(ours.named_parameters()), ours.found[len(inputs) :]))
    their_gradients = dict(zip(dict(theirs.named_parameters()), theirs.found[len(inputs) :]))
    for mine, its in names.items():
        gradient = their_gradients[its[0]] if isinstance(its, tuple) else their_gradients[its]
        gradient = gradient.chunk(3)[its[1]] if isinstance(its, tuple) else gradient
        assert torch.allclose(our_gradients[mine], gradient, **tolerance), mine
    assert len(names) == len(our_gradients)


def attention_names(ours="", theirs=""):
    names = {}
    for part, name in enumerate(("query", "key", "value")):
        names |= {f"{ours}{name}.{kind}": (f"{theirs}in_proj_{kind}", part) for kind in ("weight", "bias")}
    return names | {f"{ours}output.{kind}": f"{theirs}out_proj.{kind}" for kind in ("weight", "bias")}


def block_names(norms):
    pairs = {"feed_forward.expand": "linear1", "feed_forward.contract": "linear2"} | norms
    return {f"{ours}.{kind}": f"{theirs}.{kind}" for ours, theirs in pairs.items() for kind in ("weight", "bias")}


def padded(kind, n):
    """A mask of ours, and PyTorch's names for it."""
    causal, padding = causal_mask(n), padding_mask(LENGTHS, n)
    return {
        "none": (None, {}),
        "causal": (causal, {"attn_mask": to_attn_mask(causal)}),
        "padding": (padding, {"key_padding_mask": to_key_padding_mask(padding)}),
        "both": (
            causal & padding,
            {"attn_mask": to_attn_mask(causal), "key_padding_mask": to_key_padding_mask(padding)},
        ),
    }[kind]


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("kind", ["none", "causal", "padding", "both"])
@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("return_weights", [False, True])
def test_multi_head_attention_equals_pytorchs(dtype, kind, train, return_weights):
    theirs = nn.MultiheadAttention(8, 2, batch_first=True, dtype=dtype).train(train)
    ours = load_torch_weights(MultiHeadAttention(8, 2).to(dtype), theirs).train(train)
    x = torch.randn(3, 5, 8, dtype=dtype, requires_grad=True)
    mask, options = padded(kind, 5)

    def our_call(layer):
        output = layer(x, mask=mask, return_weights=return_weights)
        return output[0] if return_weights else output

    compare(
        ours,
        theirs,
        [x],
        our_call,
        lambda layer: layer(x, x, x, need_weights=return_weights, **options)[0],
        dtype,
        attention_names(),
    )


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_three_different_sequences_and_an_own_width_of_keys(dtype):
    theirs = nn.MultiheadAttention(8, 2, kdim=6, vdim=6, batch_first=True, dtype=dtype)
    ours = load_torch_weights(CrossAttention(8, 6, 2).to(dtype), theirs)
    query, context = torch.randn(3, 4, 8, dtype=dtype), torch.randn(3, 5, 6, dtype=dtype)
    mask = padding_mask(LENGTHS, 5)
    expected, weights = theirs(
        query, context, context, key_padding_mask=to_key_padding_mask(mask), average_attn_weights=False
    )
    output, our_weights = ours(query, context, mask, return_weights=True)
    assert torch.allclose(output, expected, atol=TOLERANCE[dtype])
    assert torch.allclose(our_weights, weights, atol=TOLERANCE[dtype])
    layer = load_torch_weights(
        MultiHeadAttention(8, 2).to(dtype), other := nn.MultiheadAttention(8, 2, batch_first=True, dtype=dtype)
    )
    key, value = torch.randn(3, 5, 8, dtype=dtype), torch.randn(3, 5, 8, dtype=dtype)
    assert torch.allclose(layer(query, key, value), other(query, key, value)[0], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("kind", ["none", "both"])
@pytest.mark.parametrize("train", [False, True])
def test_encoder_layer_equals_pytorchs(dtype, norm_first, activation, kind, train):
    theirs = nn.TransformerEncoderLayer(
        8, 2, 12, 0.0, activation, norm_first=norm_first, batch_first=True, dtype=dtype
    ).train(train)
    ours = EncoderLayer(8, 2, 12, activation=activation, norm_first=norm_first).to(dtype).train(train)
    load_torch_weights(ours, theirs)
    x = torch.randn(3, 5, 8, dtype=dtype, requires_grad=True)
    mask, options = padded(kind, 5)
    renamed = {"attn_mask": "src_mask", "key_padding_mask": "src_key_padding_mask"}
    options = {renamed[name]: value for name, value in options.items()}
    names = attention_names("attention.", "self_attn.")
    names |= block_names({"norm_attention": "norm1", "norm_feed_forward": "norm2"})
    compare(ours, theirs, [x], lambda layer: layer(x, mask), lambda layer: layer(x, **options), dtype, names)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("train", [False, True])
def test_decoder_layer_equals_pytorchs(dtype, norm_first, train):
    theirs = nn.TransformerDecoderLayer(8, 2, 12, 0.0, norm_first=norm_first, batch_first=True, dtype=dtype).train(
        train
    )
    ours = load_torch_weights(DecoderLayer(8, 2, 12, norm_first=norm_first).to(dtype), theirs).train(train)
    x = torch.randn(3, 4, 8, dtype=dtype, requires_grad=True)
    context = torch.randn(3, 5, 8, dtype=dtype, requires_grad=True)
    padding = padding_mask(LENGTHS, 5)
    names = attention_names("attention.", "self_attn.") | attention_names("context_attention.", "multihead_attn.")
    norms = {"norm_attention": "norm1", "norm_context": "norm2", "norm_feed_forward": "norm3"}
    compare(
        ours,
        theirs,
        [x, context],
        lambda layer: layer(x, context, context_mask=padding),
        lambda layer: layer(
            x,
            context,
            tgt_mask=to_attn_mask(causal_mask(4)),
            memory_key_padding_mask=to_key_padding_mask(padding),
        ),
        dtype,
        names | block_names(norms),
    )


def test_stacks_equal_pytorchs():
    theirs = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(8, 2, 12, 0.0, batch_first=True, norm_first=True, dtype=torch.float64),
        3,
        nn.LayerNorm(8, dtype=torch.float64),
        enable_nested_tensor=False,
    )
    ours = Encoder(3, 8, 2, 12).double()
    for mine, its in zip(ours.layers, theirs.layers):
        load_torch_weights(mine, its)
    x, mask = torch.randn(3, 5, 8, dtype=torch.float64), padding_mask(LENGTHS, 5)
    expected = theirs(x, src_key_padding_mask=to_key_padding_mask(mask))
    assert torch.allclose(ours(x, mask), expected, atol=1e-10)
    output, weights = ours(x, mask, return_weights=True)
    assert torch.allclose(output, expected, atol=1e-10) and weights.shape == (3, 3, 2, 5, 5)
    assert torch.allclose(weights.sum(dim=-1), torch.ones(3, 3, 2, 5).double())
    assert len({id(parameter) for parameter in ours.parameters()}) == len(list(ours.parameters())) == 3 * 16 + 2
    assert isinstance(Encoder(2, 8, 2, norm_first=False).norm, nn.Identity)


def test_a_decoder_sees_no_future_and_obeys_both_masks():
    decoder = Decoder(2, 8, 2).double().eval()
    x, context = torch.randn(3, 4, 8).double(), torch.randn(3, 5, 8).double()
    changed = x.clone()
    changed[:, 3] += 1
    assert torch.equal(decoder(x, context)[:, :3], decoder(changed, context)[:, :3])
    assert not torch.allclose(Decoder(2, 8, 2, causal=False).double()(x, context)[:, :3], decoder(x, context)[:, :3])
    other = context.clone()
    other[0, 3:] += 1  # padding of the context
    mask = padding_mask(LENGTHS, 5)
    assert torch.equal(decoder(x, context, None, mask)[0], decoder(x, other, None, mask)[0])
    output, weights, context_weights = decoder(x, context, padding_mask([4, 2, 4], 4), mask, return_weights=True)
    assert output.shape == x.shape and weights.shape == (2, 3, 2, 4, 4) and context_weights.shape == (2, 3, 2, 4, 5)
    assert (weights.triu(1) == 0).all() and (weights[:, 1, ..., 2:] == 0).all()
    floating = to_additive(padding_mask([4, 2, 4], 4), torch.float64)
    assert torch.allclose(decoder(x, context, floating, mask), output)


# Against NumPy --------------------------------------------------------------------------------------------------------


def test_heads_equal_those_of_numpy():
    x = torch.randn(2, 3, 5, 6, dtype=torch.float64)
    assert np.array_equal(split_heads(x, 3).numpy(), by_numpy.split_heads(x.numpy(), 3))
    assert torch.equal(merge_heads(split_heads(x, 3)), x)
    matrices = [torch.randn(6, 6, dtype=torch.float64) for _ in range(4)]
    mask = causal_mask(5)
    output, weights = multi_head_attention(x, *matrices, 2, mask, return_weights=True)
    expected, expected_weights = by_numpy.multi_head_attention(
        x.numpy(), *(w.numpy() for w in matrices), 2, mask.numpy(), return_weights=True
    )
    assert np.allclose(output, expected, rtol=1e-12, atol=1e-12) and np.allclose(weights, expected_weights, atol=1e-12)
    layer = MultiHeadAttention(6, 2, bias=False).double()
    for name, w in zip(("query", "key", "value", "output"), matrices):
        getattr(layer, name).weight.data = w.T.contiguous()  # nn.Linear stores [out, in]
    assert torch.allclose(layer(x, mask=mask), output)


@pytest.mark.parametrize("n, d_model", [(7, 8), (7, 5), (1, 1), (0, 3)])
def test_positions_equal_those_of_numpy(n, d_model):
    assert np.allclose(sinusoidal_positions(n, d_model, dtype=torch.float64), by_numpy.sinusoidal_positions(n, d_model))
    x = torch.randn(2, n, 2 * d_model, dtype=torch.float64)
    for interleaved in (True, False):
        assert np.allclose(rotary(x, interleaved=interleaved), by_numpy.rotary(x.numpy(), interleaved=interleaved))
    places = torch.arange(n) + 3
    assert np.allclose(rotary(x, places), by_numpy.rotary(x.numpy(), places.numpy()))
    assert np.allclose(alibi_bias(4, n), by_numpy.alibi_bias(4, n), atol=1e-6)


# Positions as layers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d_model", [8, 7, 1])
def test_sinusoids_are_a_buffer_and_learned_positions_a_parameter(d_model):
    fixed, learned = SinusoidalPositions(d_model, 10), LearnedPositions(d_model, 10)
    assert [*fixed.parameters()] == [] and [name for name, _ in fixed.named_buffers()] == ["positions"]
    assert [name for name, _ in learned.named_parameters()] == ["positions"] and not fixed.state_dict()
    x = torch.zeros(2, 4, d_model)
    assert torch.allclose(fixed(x, start=3)[1], fixed.positions[3:7])
    assert fixed(x.double()).dtype == torch.float64 and fixed.half().positions.dtype == torch.float16
    learned(x).sum().backward()
    assert (learned.positions.grad[:4] == 2).all() and (learned.positions.grad[4:] == 0).all()
    for layer in (fixed, learned):
        with pytest.raises(
            ValueError, match="places 8 to 11 are asked for, and this layer has 10, 0 to 9. Try max_len=12"
        ):
            layer(torch.zeros(2, 4, d_model, dtype=layer.positions.dtype), start=8)
        with pytest.raises(ValueError, match=f"d_model={d_model}, as this layer was made for"):
            layer(torch.zeros(2, 4, d_model + 1))


# Norm and feed-forward ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_layer_norm_equals_pytorchs(dtype):
    tolerance = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}[dtype]
    x = (100 * torch.randn(2, 3, 8) + 50).to(dtype)
    weight, bias = torch.randn(8).to(dtype), torch.randn(8).to(dtype)
    expected = nn.functional.layer_norm(x, (8,), weight, bias)
    assert torch.allclose(layer_norm(x, weight, bias), expected, rtol=tolerance, atol=tolerance)
    layer = LayerNorm(8).to(dtype)
    layer.load_state_dict({"weight": weight, "bias": bias})
    assert torch.equal(layer(x), expected)
    constant = layer_norm(torch.full((1, 8), 3.0, dtype=dtype))
    assert (constant == 0).all()


def test_gradient_of_layer_norm():
    inputs = [torch.randn(*s, dtype=torch.float64, requires_grad=True) for s in ((2, 4), (4,), (4,))]
    assert torch.autograd.gradcheck(layer_norm, inputs)


def test_feed_forward_works_on_each_token_alone():
    layer = FeedForward(6, activation=torch.tanh).double()
    assert layer.expand.out_features == 24
    x = torch.randn(2, 5, 6, dtype=torch.float64)
    assert torch.allclose(layer(x)[:, 2:3], layer(x[:, 2:3]))
    dropped = FeedForward(6, dropout=0.9)
    assert torch.equal(dropped.eval()(x.float()), dropped(x.float()))
    assert not torch.equal(dropped.train()(x.float()), dropped(x.float()))


# Any width, masks, dropout --------------------------------------------------------------------------------------------


def test_widths_per_head_and_masks_per_head():
    layer = MultiHeadAttention(10, 4, d_k=3, d_v=5)
    x = torch.randn(2, 6, 10)
    output, weights = layer(x, return_weights=True)
    assert output.shape == x.shape and weights.shape == (2, 4, 6, 6)
    per_head = torch.ones(4, 6, 6, dtype=torch.bool)
    per_head[1] = causal_mask(6)
    for shape in (per_head[None], per_head.expand(2, 4, 6, 6)):
        _, weights = layer(x, mask=shape, return_weights=True)
        assert (weights[:, 1].triu(1) == 0).all() and (weights[:, 0].triu(1) > 0).any()
    for mask in (causal_mask(6), padding_mask([6, 2], 6), causal_mask(6) & padding_mask([6, 2], 6), causal_mask(6)[-1]):
        assert layer(x, mask=mask).shape == x.shape
    assert layer(x[0], mask=causal_mask(6)).shape == (6, 10)
    assert layer(torch.randn(3, 2, 6, 10)).shape == (3, 2, 6, 10)
    assert layer(x, mask=alibi_bias(4, 6)[None]).shape == x.shape


def test_dropout_is_of_the_weights_in_training_only():
    for layer, inputs in (
        (MultiHeadAttention(8, 2, dropout=0.5), (torch.randn(2, 4, 8),)),
        (CrossAttention(8, 6, 2, dropout=0.5), (torch.randn(2, 4, 8), torch.randn(2, 5, 6))),
        (EncoderLayer(8, 2, dropout=0.5), (torch.randn(2, 4, 8),)),
        (DecoderLayer(8, 2, dropout=0.5), (torch.randn(2, 4, 8), torch.randn(2, 5, 8))),
    ):
        assert not torch.equal(layer(*inputs), layer(*inputs))
        layer.eval()
        assert torch.equal(layer(*inputs), layer(*inputs))
        _, weights, *_ = layer.train()(*inputs, return_weights=True)
        assert torch.allclose(weights.sum(dim=-1), torch.ones_like(weights[..., 0]))


# What is done to modules ----------------------------------------------------------------------------------------------


def layers():
    return {
        "SelfAttention": (SelfAttention(8, 4, 6), 1),
        "MultiHeadAttention": (MultiHeadAttention(8, 2), 1),
        "CrossAttention": (CrossAttention(8, 8, 2), 2),
        "SinusoidalPositions": (SinusoidalPositions(8, 9), 1),
        "LearnedPositions": (LearnedPositions(8, 9), 1),
        "FeedForward": (FeedForward(8), 1),
        "LayerNorm": (LayerNorm(8), 1),
        "EncoderLayer": (EncoderLayer(8, 2), 1),
        "Encoder": (Encoder(2, 8, 2), 1),
        "DecoderLayer": (DecoderLayer(8, 2), 2),
        "Decoder": (Decoder(2, 8, 2), 2),
    }


@pytest.mark.parametrize("name", layers())
def test_copies_and_saved_weights_compute_the_same(name):
    (layer, n_inputs), (other, _) = layers()[name], layers()[name]
    inputs = [torch.randn(2, 5, 8) for _ in range(n_inputs)]
    expected = layer(*inputs)
    assert torch.equal(copy.deepcopy(layer)(*inputs), expected)
    file = io.BytesIO()
    torch.save(layer.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))
    assert torch.equal(other(*inputs), expected)


@pytest.mark.parametrize("name", layers())
def test_bfloat16_autocast(name):
    layer, n_inputs = layers()[name]
    inputs = [torch.randn(2, 5, 8) for _ in range(n_inputs)]
    expected = layer(*inputs)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = layer(*inputs)
        if "Attention" in name or "Encoder" in name:
            mask = to_additive(causal_mask(5))
            masked = layer(*inputs, mask=mask)
            assert masked.isfinite().all()
            alibi = layer(*inputs, mask=-torch.rand(5, 5))
            assert alibi.isfinite().all()
    assert torch.allclose(output.float(), expected, atol=0.1)
    output.float().sum().backward() if output.requires_grad else None
    assert all(p.grad is None or p.grad.isfinite().all() for p in layer.parameters())


@pytest.mark.parametrize("name", layers())
def test_vmap_over_samples(name):
    layer, n_inputs = layers()[name]
    inputs = [torch.randn(3, 5, 8) for _ in range(n_inputs)]
    assert torch.allclose(torch.func.vmap(layer)(*inputs), layer(*inputs), atol=1e-6)


@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
@pytest.mark.parametrize("name", layers())
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_no_graph_break_under_compile(name):
    torch.compiler.reset()
    layer, n_inputs = layers()[name]
    inputs = [torch.randn(2, 5, 8) for _ in range(n_inputs)]
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    assert torch.allclose(compiled(*inputs), layer(*inputs), atol=1e-6)
    if "Attention" in name or name.startswith("Encoder"):
        mask = causal_mask(5)
        assert torch.allclose(compiled(*inputs, mask=mask), layer(*inputs, mask=mask), atol=1e-6)


@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_compiled_code_computes_the_same_and_so_do_its_gradients():
    layer = MultiHeadAttention(8, 2)
    x, mask = torch.randn(2, 5, 8), causal_mask(5)
    expected = layer(x, mask=mask)
    gradients = torch.autograd.grad(expected.square().sum(), layer.parameters())
    output = torch.compile(layer, fullgraph=True)(x, mask=mask)
    assert torch.allclose(output, expected, atol=1e-6)
    for mine, its in zip(torch.autograd.grad(output.square().sum(), layer.parameters()), gradients):
        assert torch.allclose(mine, its, atol=1e-5)


def test_export_with_any_batch_and_length():
    dim = torch.export.Dim
    x = torch.randn(2, 5, 8)
    for layer in (MultiHeadAttention(8, 2), SelfAttention(8), Encoder(1, 8, 2)):
        shapes = ({0: dim("batch", min=2), 1: dim("n", min=2, max=64)},)
        exported = torch.export.export(layer.eval(), (x,), dynamic_shapes=shapes).module()
        longer = torch.randn(3, 40, 8)
        assert torch.allclose(exported(longer), layer(longer), atol=1e-6)


def test_numpy_integers_make_layers_that_compile():
    layer = MultiHeadAttention(np.int64(8), np.int64(2), dropout=np.float32(0.5)).eval()
    x = torch.randn(2, 5, 8)
    assert torch.allclose(torch.compile(layer, fullgraph=True, backend="eager")(x), layer(x), atol=1e-6)


def test_sinusoids_are_exact_after_conversions_and_on_another_device():
    exact = torch.from_numpy(by_numpy.sinusoidal_positions(9, 8))
    layer = SinusoidalPositions(8, 9)
    assert torch.equal(layer.half().double().positions, exact)
    with torch.device("meta"):
        layer = SinusoidalPositions(8, 9)
    assert layer.positions.is_meta
    assert torch.equal(layer.to_empty(device="cpu").positions, exact.float())


def test_rotary_takes_the_places_of_each_sentence():
    x, places = torch.randn(2, 3, 5, 4), torch.tensor([[0, 1, 2, 3, 4], [7, 8, 9, 10, 11]])
    turned = rotary(x, places[:, None])
    assert torch.allclose(turned[1], rotary(x[1], places[1])) and turned.shape == x.shape
    assert torch.equal(rotary(x[0, 0], [0, 1, 2, 3, 4]), rotary(x[0, 0]))


@pytest.mark.parametrize("layer", [EncoderLayer(8, 2), DecoderLayer(8, 2)], ids=["encoder", "decoder"])
def test_masks_are_checked_before_anything_is_made_of_them(layer):
    x = torch.randn(2, 5, 8)
    inputs = (x, x) if isinstance(layer, DecoderLayer) else (x,)
    for mask, text in (
        (torch.ones(2, 1, 5).long(), "mask has dtype int64; expected booleans"),
        (np.ones((2, 1, 5), dtype=bool), "mask is an array of NumPy; expected a tensor"),
        ([[True]], "mask is a list; expected a tensor"),
        (torch.ones(2, 5).bool(), "mask has shape [2, 5], which does not broadcast"),
    ):
        with pytest.raises(ValueError) as error:
            layer(*inputs, mask=mask)
        assert text in str(error.value)
    for wrong, text in (
        (x.double(), "x is float64"),
        (x.long(), "x has dtype int64"),
        (x.numpy(), "x is an array of NumPy"),
    ):
        with pytest.raises(ValueError, match=text):
            layer(wrong, *inputs[1:])


# Errors ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, text",
    [
        (
            lambda: MultiHeadAttention(10, 4),
            "d_model=10 cannot be split into 4 heads: 10 / 4 is not a whole number. Try n_heads=2 or 5.",
        ),
        (lambda: MultiHeadAttention(8, 2, dropout=1), "dropout=1; expected a number from 0 to below 1"),
        (lambda: MultiHeadAttention(8, 2, d_v=0), "d_v=0; expected a whole number of at least 1"),
        (
            lambda: MultiHeadAttention(8, 2)(torch.ones(2, 5, 7)),
            "query has shape [2, 5, 7]; expected [..., n, d_model] with d_model=8",
        ),
        (lambda: MultiHeadAttention(8, 2)(torch.ones(5, 8), torch.ones(5, 7)), "key has shape [5, 7]"),
        (lambda: MultiHeadAttention(8, 2)(torch.ones(2, 5, 8), torch.ones(3, 5, 8)), "expected the same batch"),
        (
            lambda: MultiHeadAttention(8, 2)(torch.ones(2, 5, 8), torch.ones(2, 4, 8), torch.ones(2, 3, 8)),
            "expected one value for each key",
        ),
        (
            lambda: MultiHeadAttention(8, 2)(torch.ones(2, 5, 8).double()),
            "query is float64 and the weights of this layer are float32",
        ),
        (
            lambda: MultiHeadAttention(8, 2)(torch.ones(2, 5, 8), mask=torch.ones(2, 5).bool()),
            "mask has shape [2, 5], which does not broadcast",
        ),
        (
            lambda: MultiHeadAttention(8, 2)(torch.ones(2, 5, 8), mask=torch.ones(2, 3, 5, 5).bool()),
            "mask has shape [2, 3, 5, 5]",
        ),
        (
            lambda: CrossAttention(8, 6, 2)(torch.ones(4, 8), torch.ones(5, 8)),
            "context has shape [5, 8]; expected [..., n_context, d_context] with d_context=6",
        ),
        (lambda: CrossAttention(8, 6, 3), "d_model=8 cannot be split into 3 heads"),
        (lambda: FeedForward(8, activation="tanh"), 'activation=\'tanh\'; expected "relu", "gelu", or a function'),
        (lambda: LayerNorm(8)(torch.ones(2, 7)), "x has shape [2, 7]; expected [..., d_model] with d_model=8"),
        (lambda: layer_norm(torch.ones(2, 7), torch.ones(8)), "weight has shape [8] and x is [2, 7]"),
        (lambda: Encoder(0, 8, 2), "n_layers=0; expected a whole number of at least 1"),
        (lambda: split_heads(torch.ones(6), 2), "x has shape [6]; expected [..., n, d_model]"),
        (lambda: merge_heads(torch.ones(2, 6)), "heads has shape [2, 6]; expected [..., n_heads, n, d_head]"),
        (lambda: rotary(torch.ones(2, 3)), "expected [..., n, d] with an even d"),
        (lambda: rotary(torch.ones(2, 4), torch.ones(3)), "positions are [3] of float32"),
        (
            lambda: load_torch_weights(MultiHeadAttention(8, 4), nn.MultiheadAttention(8, 2)),
            "layer has n_heads=4 and module has 2 heads",
        ),
        (
            lambda: load_torch_weights(MultiHeadAttention(6, 2), nn.MultiheadAttention(8, 2)),
            "query.weight of the layer is [6, 6] and of the module [8, 8]",
        ),
        (
            lambda: load_torch_weights(MultiHeadAttention(8, 2, bias=False), nn.MultiheadAttention(8, 2)),
            "query: only the module has a bias; expected both or neither. Try bias=True",
        ),
        (
            lambda: load_torch_weights(MultiHeadAttention(8, 2), nn.MultiheadAttention(8, 2, add_zero_attn=True)),
            "bias_k or add_zero_attn",
        ),
        (
            lambda: load_torch_weights(MultiHeadAttention(8, 2), nn.Linear(8, 8)),
            "layer is MultiHeadAttention and module is Linear",
        ),
        (
            lambda: load_torch_weights(EncoderLayer(8, 2, 12), nn.TransformerEncoderLayer(8, 2, 12)),
            "layer has norm_first=True and module False",
        ),
        (
            lambda: load_torch_weights(
                EncoderLayer(8, 2, 12), nn.TransformerEncoderLayer(8, 2, 12, activation="gelu", norm_first=True)
            ),
            "Try activation='gelu'",
        ),
        (
            lambda: load_torch_weights(
                EncoderLayer(8, 2, 12), nn.TransformerEncoderLayer(8, 2, 12, norm_first=True, layer_norm_eps=1e-6)
            ),
            "layer has eps=1e-05 and module 1e-06",
        ),
    ],
)
def test_errors_say_what_was_given_and_what_to_try(call, text):
    with pytest.raises(ValueError) as error:
        call()
    assert text in str(error.value)


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: DecoderLayer(8, 2)(torch.ones(4, 8), None), "context is None; expected what an encoder made"),
        (lambda: MultiHeadAttention(8, 2)(torch.ones(5, 8), causal_mask(5)), "Is it a mask? Try mask=..."),
        (lambda: LayerNorm(8, eps=-1), "eps=-1; expected a number of at least 0"),
        (lambda: LayerNorm(8)(torch.ones(2, 8).double()), "x is float64 and the weights of this layer are float32"),
        (lambda: layer_norm(torch.tensor(1.0)), "x is a single number"),
        (lambda: alibi_bias(2, 4, dtype=torch.int64), "dtype is torch.int64; expected a floating one"),
        (lambda: sinusoidal_positions(2, 4, dtype=torch.int64), "dtype is torch.int64; expected a floating one"),
        (lambda: rotary(torch.ones(2, 3, 5, 4), torch.ones(2, 5)), "Try torch.arange(5), or positions[:, None]"),
        (
            lambda: load_torch_weights(CrossAttention(8, 6, 2), nn.MultiheadAttention(8, 2, kdim=6, vdim=7)),
            "module has kdim=6 and vdim=7; expected the same",
        ),
        (
            lambda: load_torch_weights(
                EncoderLayer(8, 2, 12), nn.TransformerEncoderLayer(8, 2, 12, activation=torch.tanh, norm_first=True)
            ),
            "Try activation=the module's own",
        ),
    ],
)
def test_more_errors_say_what_to_try(call, text):
    with pytest.raises(ValueError) as error:
        call()
    assert text in str(error.value)


def test_ways_of_writing_an_activation_are_one():
    for activation in (nn.ReLU(), torch.relu):
        module = nn.TransformerEncoderLayer(8, 2, 12, activation=activation, norm_first=True)
        load_torch_weights(EncoderLayer(8, 2, 12), module)


def test_nothing_is_copied_where_something_does_not_fit():
    layer, module = EncoderLayer(8, 2, 12, norm_first=False), nn.TransformerEncoderLayer(8, 2, 16)
    before = copy.deepcopy(layer.state_dict())
    with pytest.raises(ValueError, match=r"expand.weight of the layer is \[12, 8\] and of the module \[16, 8\]"):
        load_torch_weights(layer, module)
    assert all(torch.equal(value, before[name]) for name, value in layer.state_dict().items())
