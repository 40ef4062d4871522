import numpy as np
import pytest
from safetensors.numpy import save_file

from nano_simcse.checkpoint import load_parameters, load_state, read_json, save_parameters, save_state, write_json
from nano_simcse.errors import CheckpointError
from nano_simcse.parameters import Parameters

SHAPES = {"a.weight": (3, 2), "a.bias": (2,), "b": (4,)}


def filled(shapes=SHAPES, seed=0):
    params = Parameters(shapes)
    params.flat[:] = np.random.default_rng(seed).standard_normal(params.flat.shape)
    return params


def test_parameters_come_back_bit_for_bit(tmp_path):
    params = filled()
    save_parameters(tmp_path / "m.safetensors", params)
    assert load_parameters(tmp_path / "m.safetensors", SHAPES).flat.tobytes() == params.flat.tobytes()


def test_equal_parameters_make_equal_files(tmp_path):
    save_parameters(tmp_path / "1", filled())
    save_parameters(tmp_path / "2", filled())
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


def test_every_wrong_name_and_shape_is_listed(tmp_path):
    save_parameters(tmp_path / "m", filled({"a.weight": (2, 3), "a.bias": (2,), "extra": (1,)}))
    with pytest.raises(CheckpointError) as error:
        load_parameters(tmp_path / "m", SHAPES)
    for words in ("missing b", "unexpected extra", "a.weight has shape (2, 3), expected (3, 2)"):
        assert words in str(error.value)


@pytest.mark.parametrize("damage", ["truncated", "foreign", "empty", "absent"])
def test_damaged_files_are_refused(tmp_path, damage):
    path = tmp_path / "m"
    save_parameters(path, filled())
    if damage == "truncated":
        path.write_bytes(path.read_bytes()[:-5])
    elif damage == "foreign":
        path.write_bytes(b"PK\x03\x04 not a safetensors file at all")
    elif damage == "empty":
        path.write_bytes(b"")
    else:
        path.unlink()
    with pytest.raises(CheckpointError, match=r"not a complete safetensors file|does not exist"):
        load_parameters(path, SHAPES)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused_by_name(tmp_path, value):
    params = filled()
    params["a.bias"][1] = value
    save_parameters(tmp_path / "m", params)
    with pytest.raises(CheckpointError, match=r"m: a\.bias holds NaN or infinity"):
        load_parameters(tmp_path / "m", SHAPES)


def test_a_table_that_differs_is_refused_before_memory_is_asked_for(tmp_path):
    save_parameters(tmp_path / "m", filled())
    with pytest.raises(CheckpointError, match=r"b has shape \(4,\), expected"):
        load_parameters(tmp_path / "m", {**SHAPES, "b": (2**50,)})


@pytest.mark.parametrize("metadata", [None, {"other": "1"}, {"progress": "soon"}, {"progress": '{"step": 3}'}])
def test_a_state_without_its_step_is_refused(tmp_path, metadata):
    save_file({"parameters": filled().flat}, tmp_path / "s", metadata=metadata)
    with pytest.raises(CheckpointError, match="does not say after which step"):
        load_state(tmp_path / "s", {"parameters": filled()})


def test_state_comes_back_with_its_step(tmp_path):
    parameters, moments = filled(seed=1), filled(seed=2)
    progress = {"step": 17, "best_step": 10, "best_score": 41.25}
    save_state(tmp_path / "s", {"parameters": parameters, "m": moments}, progress)
    target = {"parameters": filled(seed=3), "m": filled(seed=4)}
    assert load_state(tmp_path / "s", target) == progress
    assert target["parameters"].flat.tobytes() == parameters.flat.tobytes()
    assert target["m"].flat.tobytes() == moments.flat.tobytes()


def test_state_with_other_buffers_or_sizes_is_refused(tmp_path):
    save_state(tmp_path / "s", {"parameters": filled()}, {"step": 1, "best_step": 0, "best_score": None})
    with pytest.raises(CheckpointError, match="expected the buffers"):
        load_state(tmp_path / "s", {"parameters": filled(), "m": filled()})
    with pytest.raises(CheckpointError, match="has 12 numbers, the model 1"):
        load_state(tmp_path / "s", {"parameters": filled({"x": (1,)})})


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "m"
    save_parameters(path, filled(seed=1))
    before = path.read_bytes()

    def full_disk(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("nano_simcse.checkpoint.save_file", full_disk)
    with pytest.raises(OSError, match="No space left"):
        save_parameters(path, filled(seed=2))
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_json_is_whole_or_refused(tmp_path):
    write_json(tmp_path / "x.json", {"a": "ü"})
    assert read_json(tmp_path / "x.json") == {"a": "ü"}
    (tmp_path / "x.json").write_text("{", encoding="utf-8")
    with pytest.raises(CheckpointError, match="cannot be read as JSON"):
        read_json(tmp_path / "x.json")
    with pytest.raises(CheckpointError, match="does not exist"):
        read_json(tmp_path / "y.json")
