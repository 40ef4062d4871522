"""The stand-in itself: what CuPy refuses it refuses, what CuPy computes it computes, and it counts."""

import sys

import numpy as np
import pytest

from nano_simcse import backend

from .array import DeviceArray
from .meter import Banned, Refused


@pytest.fixture
def xp(meter):
    return sys.modules["cupy"]


@pytest.fixture
def a(xp):
    return xp.asarray(np.arange(6, dtype=np.float32).reshape(2, 3))


H = np.ones((2, 3), np.float32)

REFUSED = {
    "np.asarray of a device array": lambda xp, a: np.asarray(a),
    "np.array of a device array": lambda xp, a: np.array([a]),
    "a NumPy ufunc": lambda xp, a: np.exp(a),
    "a NumPy function": lambda xp, a: np.concatenate([a, a]),
    "adding a host array": lambda xp, a: a + H,
    "adding to a host array": lambda xp, a: H + a,
    "adding to a host array in place": lambda xp, a: H.copy().__iadd__(a),
    "adding a 0-d host array": lambda xp, a: a + np.array(1, np.float32),
    "a ufunc of a host array": lambda xp, a: xp.multiply(a, H),
    "a host array as out": lambda xp, a: xp.exp(a, out=H.copy()),
    "adding a list": lambda xp, a: a[0] + [1, 2, 3],
    "assigning to a host array": lambda xp, a: H.copy().__setitem__(0, a[0]),
    "where= in a ufunc": lambda xp, a: xp.exp(a, where=a > 0),
    "where= in a reduction": lambda xp, a: a.sum(where=a > 0),
    "initial= in a reduction": lambda xp, a: xp.max(a, initial=0),
    "mode= in take": lambda xp, a: xp.take(a, xp.arange(2), mode="clip"),
    "clip by keyword": lambda xp, a: xp.clip(a, min=0),
    "einsum with out=": lambda xp, a: xp.einsum("ij->j", a, out=a[0]),
    "matmul of host and device": lambda xp, a: a @ H.T,
    "a device array as a Python index": lambda xp, a: [1, 2][xp.arange(1)[0]],
    "strings": lambda xp, a: xp.asarray(np.array(["a"])),
    "an index in range()": lambda xp, a: range(a[0, 0]),
    "memoryview": lambda xp, a: memoryview(a),
}
VALUE_ERRORS = {
    "assigning a host array": lambda xp, a: a.__setitem__(slice(None), H),
    "quicksort": lambda xp, a: xp.argsort(a, kind="quicksort"),
}
ABSENT = {
    "errstate": lambda xp, a: xp.errstate,
    "vecdot": lambda xp, a: xp.vecdot,
    "setflags": lambda xp, a: a.setflags,
    "vector_norm": lambda xp, a: xp.linalg.vector_norm,
}
UNSUPPORTED = {
    "maximum.reduceat": lambda xp, a: xp.maximum.reduceat(a, xp.arange(2)),
    "maximum.reduce": lambda xp, a: xp.maximum.reduce(a),
    "multiply.at": lambda xp, a: xp.multiply.at(a, xp.arange(2), a),
}
BANNED = {
    "an index array on the host": lambda xp, a: a[np.array([0, 1])],
    "a list as index": lambda xp, a: a[[0, 1]],
    "writing one place twice": lambda xp, a: a.__setitem__(xp.zeros(2, dtype=int), a),
    "float64 from a default": lambda xp, a: xp.zeros(3),
    "float64 from a constant": lambda xp, a: a * np.float64(0.5),
    "float64 from a conversion": lambda xp, a: a.astype(float),
    "overlapping input and output": lambda xp, a: xp.add(a[:, :2], 1, out=a[:, 1:]),
}


@pytest.mark.parametrize(
    ("error", "use"),
    [
        *(pytest.param(TypeError, use, id=name) for name, use in REFUSED.items()),
        *(pytest.param(ValueError, use, id=name) for name, use in VALUE_ERRORS.items()),
        *(pytest.param(AttributeError, use, id=name) for name, use in ABSENT.items()),
        *(pytest.param(NotImplementedError, use, id=name) for name, use in UNSUPPORTED.items()),
        *(pytest.param(Banned, use, id=name) for name, use in BANNED.items()),
    ],
)
def test_it_refuses(xp, a, error, use):
    with pytest.raises(error):
        use(xp, a)


@pytest.mark.parametrize(
    "compute",
    [
        lambda xp, a: a * 2 + 1,
        lambda xp, a: 1 - a / np.float32(3),
        lambda xp, a: np.float32(2) * a,
        lambda xp, a: a @ a.T,
        lambda xp, a: xp.where(a > 2, a, np.float32(-1)),
        lambda xp, a: xp.concatenate([a, a]).sum(axis=0, keepdims=True),
        lambda xp, a: xp.split(a.T, 3)[1],
        lambda xp, a: a[xp.arange(2), xp.arange(2)],
        lambda xp, a: a[:, None, 1:].swapaxes(0, 2).reshape(-1),
        lambda xp, a: xp.exp(a, out=xp.empty_like(a)),
        lambda xp, a: xp.full((2, 1), 0.5, dtype=np.float32),
        lambda xp, a: a.max(axis=1) == xp.maximum(a[:, 1], a[:, 2]),
        lambda xp, a: (xp.arange(4, dtype=np.uint64) << np.uint64(3)).view(np.uint16),
        lambda xp, a: xp.eye(2, 3, dtype=bool) | (a > 1),
    ],
)
def test_it_computes_what_numpy_computes(xp, a, compute):
    expected, got = compute(np, a.get()), compute(xp, a)
    assert isinstance(got, DeviceArray) and got.dtype == expected.dtype
    np.testing.assert_array_equal(got.get(), expected)


def test_in_place_operators_change_the_array_and_matmul_does_not(xp):
    a = xp.asarray(np.full((2, 2), 3, np.float32))
    same = a
    a += 1
    assert same.tolist() == [[4, 4], [4, 4]]
    a @= a
    assert same.tolist() == [[4, 4], [4, 4]] and a.tolist() == [[32, 32], [32, 32]]


def test_fresh_memory_holds_nothing_useful(xp):
    assert np.isnan(xp.empty((2, 2), dtype=np.float32).get()).all()
    assert (xp.empty_like(xp.arange(3)).get() == np.iinfo(np.int64).max).all()


def test_uploads_do_not_share_memory(xp):
    h = np.zeros(3, np.float32)
    d = xp.asarray(h)
    h[0] = 1
    assert d.tolist() == [0, 0, 0]


def test_it_counts_copies(xp, a, meter):
    assert (meter.uploads, meter.downloads) == (1, 0)
    for look in (float, int, bool, lambda d: f"{d:.1f}", lambda d: d.item(), backend.to_host):
        before = meter.downloads
        look(a[1, 2])
        assert meter.downloads == before + 1
    before = meter.downloads
    a[a > 1]
    xp.nonzero(a)
    assert meter.downloads == before + 2


@pytest.mark.parametrize(
    ("launches", "use"),
    [
        (0, lambda xp, a: a[0]),
        (0, lambda xp, a: a[1, 2]),
        (0, lambda xp, a: a.T.swapaxes(0, 1).reshape(3, 2)),
        (0, lambda xp, a: xp.empty((2, 2), dtype=np.float32)),
        (0, lambda xp, a: xp.split(a, 2)),
        (1, lambda xp, a: a.T.reshape(-1)),
        (1, lambda xp, a: a + 1),
        (1, lambda xp, a: a.sum()),
        (1, lambda xp, a: a @ a.T),
        (2, lambda xp, a: xp.matmul(a.T[None], a[None])),
        (3, lambda xp, a: xp.matmul(a.T[None], a[None], out=xp.empty((1, 3, 3), dtype=a.dtype).swapaxes(1, 2))),
        (2, lambda xp, a: a[xp.arange(2)]),
        (6, lambda xp, a: a[xp.arange(2), xp.arange(2)]),
        (1, lambda xp, a: a[0].__iadd__(1)),
    ],
)
def test_it_counts_launches(xp, a, meter, launches, use):
    before = meter.launches
    use(xp, a)
    assert meter.launches == before + launches


def test_an_array_of_another_device_is_noticed(xp, meter):
    meter.device = 1
    a = xp.asarray(H)
    assert a.device.id == 1 and backend.device_of(a) == "cuda:1"
    meter.device = 0
    with pytest.raises(Banned, match="device 1 is used while device 0 is current"):
        a + 1


def test_the_backend_takes_it_for_cupy(xp, a):
    assert backend.array_module(a) is xp and not backend.on_host(a)
    assert backend.resolve_device("cuda") == "cuda:0"
    moved = backend.to_device(H, "cuda:0")
    assert isinstance(moved, DeviceArray)
    np.testing.assert_array_equal(backend.to_host(moved), H)


def test_scatter_add_and_erf_reach_the_device(xp, meter):
    target, ids = xp.zeros((3, 1), dtype=np.float32), xp.asarray(np.array([2, 0, 2]))
    backend.scatter_add(target, ids, xp.asarray(np.array([[1], [10], [100]], np.float32)))
    assert target.tolist() == [[10], [0], [101]]
    meter.float64 = True
    np.testing.assert_array_equal(backend.erf(xp.asarray(np.array([0.0, 0.5]))).get(), backend.erf(np.array([0, 0.5])))


def test_refusals_are_type_errors_and_bans_are_not():
    assert issubclass(Refused, TypeError) and not issubclass(Banned, TypeError | ValueError)
