"""Each layer: hand numbers, and its backward against central differences in float64."""

import math

import numpy as np
import pytest
from cases import GRADIENT_LIMIT, backward_errors, random_rows
from scipy import special, stats

from nano_simcse.backend import BLOCK_ELEMENTS
from nano_simcse.data.batches import pack
from nano_simcse.errors import InputError
from nano_simcse.layers import (
    POOLINGS,
    attention,
    dropout,
    embedding,
    gelu,
    layer_norm,
    linear,
    normalize,
    pool,
    softmax,
    tanh_head,
)
from nano_simcse.layers.pooling import states_read
from nano_simcse.masks import Masks


def draw(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def keep_like(shape, rate=0.3, seed=1):
    return np.random.default_rng(seed).random(shape) >= rate


# --- backward against central differences -----------------------------------------------------------------------


def cube(x):
    """A layer whose gradient is known: y = x^3, dx = 3 x^2 dy."""
    return x**3, lambda dy: 3 * x * x * dy


def test_referee_agrees_on_a_known_gradient_and_disagrees_on_a_wrong_one():
    x = draw(4, 3)
    assert backward_errors(cube, x)[0] < 1e-11
    assert backward_errors(lambda x: (x**3, lambda dy: 3.0001 * x * x * dy), x)[0] > 1e-5


def packed_pool(pooling, batch):
    """pool as a layer of as many array arguments as there are hidden states."""

    def layer(*hidden):
        pooled, backward = pool(list(hidden), batch, pooling)
        return pooled, lambda d: tuple(
            np.zeros_like(h) if g is None else g for h, g in zip(hidden, backward(d), strict=True)
        )

    return layer


BATCH = pack(random_rows([3, 5, 3, 2], 9))
PADDED_BATCH = pack(random_rows([3, 5, 3, 2], 9), multiple=4)
KEEP = keep_like((7, 5))
ATTENTION_KEEP = keep_like((3, 2, 4, 4))
REAL = np.array([[True] * 4, [True, True, False, False], [True, False, False, False]])
QKV = [draw(3, 2, 4, 5, seed=s) for s in (1, 2, 3)]

BACKWARDS = {
    "linear": (linear, draw(7, 5), draw(5, 3, seed=1), draw(3, seed=2)),
    "embedding": (lambda table: embedding(table, np.array([1, 3, 1, 1, 0])), draw(5, 4)),
    "dropout": (lambda x: dropout(x, KEEP, 1 / 0.7), draw(7, 5)),
    "dropout off": (lambda x: dropout(x, None, 1.0), draw(7, 5)),
    "layer_norm": (layer_norm, draw(6, 5), draw(5, seed=1), draw(5, seed=2)),
    "layer_norm eps": (lambda x, g, b: layer_norm(x, g, b, 0.3), draw(6, 5), draw(5, seed=1), draw(5, seed=2)),
    "gelu erf": (gelu, 2 * draw(6, 5)),
    "gelu tanh": (lambda x: gelu(x, "tanh"), 2 * draw(6, 5)),
    "softmax": (softmax, 2 * draw(4, 3, 5)),
    "softmax keep": (lambda s: softmax(s, REAL[:, None, :]), 2 * draw(3, 2, 4)),
    "attention": (attention, *QKV),
    "attention padding": (lambda q, k, v: attention(q, k, v, REAL), *QKV),
    "attention dropout": (lambda q, k, v: attention(q, k, v, None, ATTENTION_KEEP, 1 / 0.7), *QKV),
    "attention both": (lambda q, k, v: attention(q, k, v, REAL, ATTENTION_KEEP, 1 / 0.7), *QKV),
    "tanh_head": (tanh_head, draw(6, 5), draw(5, 4, seed=1), draw(4, seed=2)),
    "normalize": (normalize, draw(6, 5)),
    "normalize far from 1": (lambda x: normalize(x), 50 * draw(6, 5)),
}
for _name in POOLINGS:
    BACKWARDS[f"pool {_name}"] = (packed_pool(_name, BATCH), *(draw(13, 4, seed=s) for s in range(3)))
    BACKWARDS[f"pool {_name} padded"] = (packed_pool(_name, PADDED_BATCH), *(draw(20, 4, seed=s) for s in range(3)))


@pytest.mark.parametrize("name", BACKWARDS)
def test_backward_equals_central_differences(name):
    f, *arguments = BACKWARDS[name]
    assert max(backward_errors(f, *(a.copy() for a in arguments))) <= GRADIENT_LIMIT


@pytest.mark.parametrize("name", BACKWARDS)
def test_backward_twice_gives_the_same_bits_and_leaves_its_inputs_alone(name):
    f, *arguments = BACKWARDS[name]
    before = [a.copy() for a in arguments]
    y, backward = f(*arguments)
    dy = draw(*y.shape, seed=9)
    dy_before, y_before = dy.copy(), y.copy()
    first, second = (g if isinstance(g, tuple) else (g,) for g in (backward(dy), backward(dy)))
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(dy, dy_before)
    np.testing.assert_array_equal(y, y_before)
    for a, b in zip(arguments, before, strict=True):
        np.testing.assert_array_equal(a, b)


# --- hand numbers -----------------------------------------------------------------------------------------------


def test_linear_by_hand():
    y, backward = linear(
        np.array([[1.0, 2.0]]), np.array([[1.0, 0.0, -1.0], [2.0, 1.0, 0.5]]), np.array([0.1, 0.2, 0.3])
    )
    np.testing.assert_allclose(y, [[5.1, 2.2, 0.3]], rtol=1e-15)
    dx, dw, db = backward(np.array([[1.0, 10.0, 100.0]]))
    np.testing.assert_array_equal(dx, [[-99.0, 62.0]])
    np.testing.assert_array_equal(dw, [[1.0, 10.0, 100.0], [2.0, 20.0, 200.0]])
    np.testing.assert_array_equal(db, [1.0, 10.0, 100.0])


def test_embedding_adds_up_the_uses_of_a_repeated_token():
    table = draw(4, 2)
    y, backward = embedding(table, np.array([2, 0, 2, 2]))
    np.testing.assert_array_equal(y, table[[2, 0, 2, 2]])
    dy = np.array([[1.0, 2.0], [10.0, 20.0], [100.0, 200.0], [0.5, 0.25]])
    np.testing.assert_array_equal(backward(dy), [[10.0, 20.0], [0.0, 0.0], [101.5, 202.25], [0.0, 0.0]])


def test_embedding_adds_into_a_given_buffer():
    buffer = np.ones((4, 2))
    _, backward = embedding(draw(4, 2), np.array([1, 1]))
    assert backward(np.full((2, 2), 3.0), into=buffer) is buffer
    np.testing.assert_array_equal(buffer, [[1, 1], [7, 7], [1, 1], [1, 1]])


def test_dropout_keeps_and_scales_by_hand():
    y, backward = dropout(np.array([[1.0, 2.0, 3.0]]), np.array([[True, False, True]]), 2.0)
    np.testing.assert_array_equal(y, [[2.0, 0.0, 6.0]])
    np.testing.assert_array_equal(backward(np.array([[5.0, 7.0, 9.0]])), [[10.0, 0.0, 18.0]])


def test_layer_norm_by_hand():
    # 1, 2, 3, 6: mean 3, biased variance (4 + 1 + 0 + 9) / 4 = 3.5
    y, _ = layer_norm(
        np.array([[1.0, 2.0, 3.0, 6.0]]), np.array([1.0, 1.0, 1.0, 2.0]), np.array([0.0, 0.5, 0.0, 0.0]), 0.0
    )
    r = 1 / math.sqrt(3.5)
    np.testing.assert_allclose(y, [[-2 * r, -r + 0.5, 0.0, 6 * r]], atol=1e-15)


def test_layer_norm_puts_eps_inside_the_root():
    x = np.array([[1.0, -1.0]])  # variance 1
    y, _ = layer_norm(x, np.ones(2), np.zeros(2), 3.0)
    np.testing.assert_allclose(y, [[0.5, -0.5]], rtol=1e-15)  # 1 / (sqrt(1) + 3) would be 0.25


def test_layer_norm_ignores_shift_and_scale_of_a_row():
    x, gamma, beta = draw(5, 8), draw(8, seed=1), draw(8, seed=2)
    y, _ = layer_norm(x, gamma, beta)
    moved, _ = layer_norm(1e4 + 3 * x, gamma, beta)
    np.testing.assert_allclose(moved, y, atol=1e-10)


def test_layer_norm_of_a_constant_row_is_beta():
    beta = draw(6, seed=2)
    y, backward = layer_norm(np.full((2, 6), 0.1), np.ones(6), beta)
    np.testing.assert_allclose(y, np.tile(beta, (2, 1)), atol=1e-9)
    assert np.isfinite(backward(draw(2, 6))[0]).all()


def test_gelu_is_x_times_the_normal_distribution_function():
    x = np.linspace(-8, 8, 321)
    y, backward = gelu(x)
    np.testing.assert_allclose(y, x * stats.norm.cdf(x), atol=1e-15)
    np.testing.assert_allclose(backward(np.ones_like(x)), stats.norm.cdf(x) + x * stats.norm.pdf(x), atol=1e-15)
    assert gelu(np.array([1.0]))[0][0] == pytest.approx(0.8413447460685429, abs=1e-15)


def test_gelu_tanh_form_by_hand_and_its_distance_from_the_erf_form():
    x = np.linspace(-6, 6, 2001)
    y, _ = gelu(x, "tanh")
    np.testing.assert_allclose(y, 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))), atol=1e-14)
    gap = np.abs(y - gelu(x)[0]).max()
    assert 4.0e-4 < gap < 4.8e-4


def test_gelu_float32_is_within_a_millionth_over_minus_ten_to_ten():
    x = np.linspace(-10, 10, 400_001).astype(np.float32)
    exact = x.astype(np.float64)
    y, backward = gelu(x)
    slope = backward(np.ones_like(x))
    assert y.dtype == slope.dtype == np.float32
    assert np.abs(y - exact * special.ndtr(exact)).max() < 1e-6
    assert np.abs(slope - (special.ndtr(exact) + exact * stats.norm.pdf(exact))).max() < 1e-6


def test_gelu_float32_far_out_is_zero_or_the_identity():
    x = np.array([-1e4, -30.0, 30.0, 1e4], np.float32)
    y, backward = gelu(x)
    np.testing.assert_array_equal(y, [0, 0, 30, 1e4])
    np.testing.assert_array_equal(backward(np.ones(4, np.float32)), [0, 0, 1, 1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gelu_in_blocks_equals_gelu_in_one(dtype):
    x = draw(3, BLOCK_ELEMENTS // 2).astype(dtype)  # three blocks of one row
    y, backward = gelu(x)
    for row in range(3):
        alone, alone_back = gelu(x[row])
        np.testing.assert_array_equal(y[row], alone)
        np.testing.assert_array_equal(backward(np.ones_like(x))[row], alone_back(np.ones_like(x[row])))


@pytest.mark.parametrize(("form", "dtype"), [("erf", np.float64), ("erf", np.float32), ("tanh", np.float32)])
def test_gelu_without_its_slope_has_the_same_bits(form, dtype):
    x = np.linspace(-9, 9, 1001).astype(dtype)
    y, backward = gelu(x, form, grad=False)
    assert backward is None
    assert y.tobytes() == gelu(x, form)[0].tobytes()


def test_gelu_refuses_an_unknown_form():
    with pytest.raises(ValueError, match=r"gelu form 'relu' is not one of erf, tanh"):
        gelu(np.zeros(2), "relu")


def test_layer_norm_and_dropout_in_blocks_equal_those_of_the_rows():
    x, dy = draw(3, BLOCK_ELEMENTS // 2), draw(3, BLOCK_ELEMENTS // 2, seed=1)
    gamma, beta = draw(x.shape[1], seed=2), draw(x.shape[1], seed=3)
    keep = keep_like(x.shape)
    y, backward = layer_norm(x, gamma, beta)
    dx, dgamma, dbeta = backward(dy)
    parts = [layer_norm(x[i : i + 1], gamma, beta) for i in range(3)]
    undone = [back(dy[i : i + 1]) for i, (_, back) in enumerate(parts)]
    np.testing.assert_allclose(y, np.concatenate([part for part, _ in parts]), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(dx, np.concatenate([u[0] for u in undone]), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(dgamma, sum(u[1] for u in undone), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(dbeta, sum(u[2] for u in undone), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(dropout(x, keep, 1.25)[0], np.where(keep, x * 1.25, 0))


def test_softmax_by_hand():
    p, backward = softmax(np.log(np.array([[1.0, 2.0, 5.0]])))
    np.testing.assert_allclose(p, [[0.125, 0.25, 0.625]], rtol=1e-15)
    # diag(p) - p p^T, first column
    np.testing.assert_allclose(backward(np.array([[1.0, 0.0, 0.0]])), [[0.109375, -0.03125, -0.078125]], rtol=1e-14)


def test_softmax_is_stable_and_gives_exact_zero_where_nothing_exists():
    p, _ = softmax(np.array([[1e4, 1e4, -1e4]]), np.array([True, True, False]))
    np.testing.assert_array_equal(p, [[0.5, 0.5, 0.0]])
    p, backward = softmax(np.array([[1.0, 1e6]]), np.array([True, False]))
    np.testing.assert_array_equal(p, [[1.0, 0.0]])
    np.testing.assert_array_equal(backward(np.array([[3.0, 5.0]])), [[0.0, 0.0]])


def test_softmax_leaves_the_scores_alone():
    scores = draw(2, 3)
    before = scores.copy()
    softmax(scores)
    np.testing.assert_array_equal(scores, before)


def test_attention_by_hand():
    # two tokens, one head of one column: scores 0 and log 3, hence weights 1/4 and 3/4 of the values 8 and 16
    q, k, v = (np.array(x).reshape(1, 1, -1, 1) for x in ([1.0], [0.0, math.log(3)], [8.0, 16.0]))
    y, _ = attention(q, k, v)
    assert y.item() == pytest.approx(14.0, abs=1e-14)
    y, _ = attention(q, k, v, np.array([[True, False]]))
    assert y.item() == 8.0
    y, _ = attention(q, k, v, None, np.array([False, True]).reshape(1, 1, 1, 2), 2.0)
    assert y.item() == pytest.approx(2 * 0.75 * 16, abs=1e-13)


def test_attention_divides_scores_by_the_root_of_the_head_width():
    q = np.full((1, 1, 1, 4), 1.0)
    k = np.stack([np.zeros(4), np.full(4, 0.5 * math.log(3))])[None, None]  # q k / sqrt 4 = 0 and log 3
    y, _ = attention(q, k, np.array([8.0, 16.0]).reshape(1, 1, 2, 1))
    assert y.item() == pytest.approx(14.0, abs=1e-14)


def test_attention_writes_to_the_arrays_it_is_given():
    q, k, v = QKV
    context, backward = attention(q, k, v)
    do = draw(*context.shape, seed=4)
    expected = backward(do)
    out, grads = np.empty_like(context), tuple(np.empty_like(x) for x in QKV)
    same, back = attention(q, k, v, out=out)
    assert same is out
    np.testing.assert_array_equal(out, context)
    back(do, out=grads)
    for got, want in zip(grads, expected, strict=True):
        np.testing.assert_array_equal(got, want)


def test_padding_keys_get_no_gradient():
    q, k, v = QKV
    context, backward = attention(q, k, v, REAL, ATTENTION_KEEP, 1 / 0.7)
    _, dk, dv = backward(draw(*context.shape, seed=5))
    gone = np.broadcast_to(~REAL[:, None, :, None], dk.shape)
    assert not dk[gone].any()
    assert not dv[gone].any()


def test_tanh_head_by_hand():
    y, backward = tanh_head(np.array([[1.0]]), np.array([[2.0]]), np.array([-1.5]))
    assert y.item() == pytest.approx(math.tanh(0.5), abs=1e-16)
    slope = 1 / math.cosh(0.5) ** 2
    np.testing.assert_allclose([g.item() for g in backward(np.array([[1.0]]))], [2 * slope, slope, slope], rtol=1e-14)


def test_normalize_by_hand():
    y, backward = normalize(np.array([[3.0, 4.0]]))
    np.testing.assert_allclose(y, [[0.6, 0.8]], rtol=1e-15)
    # (dy - y (y . dy)) / 5 with dy = (1, 0): (1 - .36, -.48) / 5
    np.testing.assert_allclose(backward(np.array([[1.0, 0.0]])), [[0.128, -0.096]], rtol=1e-14)
    np.testing.assert_allclose(backward(np.array([[3.0, 4.0]])), [[0.0, 0.0]], atol=1e-15)  # along x: nothing


def test_normalize_names_the_zero_row():
    x = draw(4, 3)
    x[2] = 0
    with pytest.raises(InputError, match=r"^row 2 is the zero vector"):
        normalize(x)


def test_normalize_counts_a_row_whose_squares_vanish_as_zero():
    assert np.linalg.norm(normalize(np.full((1, 3), 1e-18, np.float32))[0]) == pytest.approx(1.0, abs=1e-6)
    with pytest.raises(InputError, match=r"row 0 is the zero vector \(in float32\)"):
        normalize(np.full((1, 3), 1e-25, np.float32))


@pytest.mark.parametrize("dtype", [np.float16, np.int64])
def test_normalize_takes_floats_wide_enough_for_squares(dtype):
    with pytest.raises(InputError, match=f"x is an array of {np.dtype(dtype)}; expected one of float32 or float64"):
        normalize(np.array([[300, 400]], dtype))


def test_which_hidden_states_a_pooling_reads():
    assert [states_read(p, 4) for p in POOLINGS] == [(3,), (3,), (3,), (0, 3), (2, 3)]


@pytest.mark.parametrize("multiple", [1, 4])
def test_pooling_by_hand_on_padded_and_packed_tokens(multiple):
    rows = random_rows([3, 5, 3, 2], 9)
    batch = pack(rows, multiple=multiple)
    hidden = [draw(len(batch.ids), 4, seed=s) for s in range(4)]
    expected = {name: [] for name in POOLINGS}
    for first, row in zip(batch.first, rows, strict=True):
        mine = [h[first : first + len(row)] for h in hidden]
        expected["cls"].append(mine[3][0])
        expected["cls_before_pooler"].append(mine[3][0])
        expected["mean"].append(mine[3].mean(axis=0))
        expected["avg_first_last"].append((mine[0].mean(axis=0) + mine[3].mean(axis=0)) / 2)
        expected["avg_top2"].append((mine[2].mean(axis=0) + mine[3].mean(axis=0)) / 2)
    for name in POOLINGS:
        np.testing.assert_allclose(pool(hidden, batch, name)[0], expected[name], rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("keep", [None, np.array([[True, False]])])
@pytest.mark.parametrize(("x", "found"), [(np.array([[1, 2]]), "an array of int64"), ([[1.0, 2.0]], "a list")])
def test_dropout_takes_floats_only(x, found, keep):
    with pytest.raises(InputError, match=f"x is {found}; expected .* float32 or float64"):
        dropout(x, keep, 1.25)  # which integers would cut to 1


def test_inverted_dropout_keeps_the_mean():
    masks = Masks(seed=1, step=0, rate=0.3)
    keep = masks.keep(0, np.arange(4000, dtype=np.uint64), 50)
    mean = dropout(np.ones((4000, 50)), keep, masks.scale)[0].mean()
    sigma = math.sqrt(0.3 / 0.7 / 200_000)  # of the mean of 200,000 units of variance p / (1 - p)
    assert abs(mean - 1) < 5 * sigma
