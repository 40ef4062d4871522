"""Centring and whitening: exact covariances, clouds without full rank, and the same numbers after saving and export."""

import json

import numpy as np
import pytest
from bert_folder import SENTENCES, write_bert, write_json, write_modules
from safetensors.numpy import load_file, save_file
from tiny import TINY, sentences, write_sentences

from nano_simcse import EncoderConfig, SentenceEncoder, train
from nano_simcse.cli import main
from nano_simcse.data.tokenizer import Tokenizer
from nano_simcse.errors import CheckpointError, InputError
from nano_simcse.model import new_encoder
from nano_simcse.transforms import Transform, fit_transform, with_fitted_transform


def cloud(n=300, width=8, seed=0):
    """Rows with a mean of about 3 and directions of lengths that differ, float64."""
    generator = np.random.default_rng(seed)
    return generator.standard_normal((n, width)) @ generator.standard_normal((width, width)) + 3


@pytest.fixture(scope="module")
def encoder():
    tokenizer = Tokenizer.train(sentences(), 150)
    config = EncoderConfig(tokenizer.vocab_size, layers=1, width=16, heads=2, max_positions=24)
    return new_encoder(config, tokenizer, "mean", 24, 0)


@pytest.fixture(scope="module")
def whitened(encoder):
    return with_fitted_transform(encoder, sentences(120), rank=6)


# --- the mathematics


def test_whitened_rows_have_mean_0_and_covariance_1():
    x = cloud()
    z = fit_transform(x)(x)
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(z.T @ z / len(z), np.eye(8), atol=1e-12)


def test_whitening_by_hand():
    """10 along (3, 4) / 5 and 5 along (4, -3) / 5: variances 50 and 12.5, and z the coordinates over their roots."""
    x = np.array([5.0, 7]) + np.array([[6, 8], [-6, -8], [4, -3], [-4, 3]])
    fitted = fit_transform(x)
    np.testing.assert_allclose(fitted.mean, [5, 7], atol=1e-14)
    np.testing.assert_allclose(fitted.matrix, np.array([[0.6, 0.8], [0.8, -0.6]]) / np.sqrt([50, 12.5]), atol=1e-14)
    np.testing.assert_allclose(fitted(x), np.sqrt(2) * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]]), atol=1e-14)


def test_the_rank_keeps_the_leading_directions():
    x = cloud()
    full, three = fit_transform(x), fit_transform(x, rank=3)
    np.testing.assert_array_equal(three.matrix, full.matrix[:, :3])
    assert (three.inputs, three.outputs) == (8, 3)
    lengths = np.linalg.norm(full.matrix, axis=0)  # 1 / standard deviation
    eigenvalues = np.linalg.eigvalsh(np.cov(x.T, bias=True))[::-1]
    np.testing.assert_allclose(lengths, eigenvalues**-0.5, rtol=1e-10)


def test_centring_takes_the_mean_off_and_nothing_else():
    x = cloud()
    fitted = fit_transform(x, "centre")
    assert fitted.matrix is None and fitted.outputs == 8
    np.testing.assert_array_equal(fitted(x), x - fitted.mean)
    np.testing.assert_allclose(fitted.mean, x.mean(axis=0), atol=1e-14)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_cloud_without_full_rank_keeps_the_directions_it_has(kind):
    five = cloud(5).astype(kind)
    fitted = fit_transform(five)
    assert fitted.outputs == 4
    z = fitted(five.astype(np.float64))
    np.testing.assert_allclose(z.T @ z / 5, np.eye(4), atol=1e-10)
    flat = (cloud(200, 3) @ cloud(3, 8, seed=1)).astype(kind)  # 200 rows in three of eight directions
    assert fit_transform(flat).outputs == 3
    with pytest.raises(InputError, match="rank is 4; these 200 embeddings of width 8 vary in 3 directions only"):
        fit_transform(flat, rank=4)


def test_a_direction_within_the_noise_of_float32_is_left_out():
    x = cloud()
    x[:, 2] = 4 + 1e-4 * np.random.default_rng(1).standard_normal(300)  # the largest number of x is about 15
    assert fit_transform(x).outputs == 8
    assert fit_transform(x.astype(np.float32)).outputs == 7


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("n", [2, 10, 10_000])
def test_a_single_point_cannot_be_whitened(kind, n):
    """Rounding in the mean of equal rows must not count as a direction."""
    for way, verb in (("whiten", "whitening"), ("centre", "centring")):
        with pytest.raises(InputError, match=f"the {n} embeddings are one single point; {verb} needs a cloud"):
            fit_transform(np.full((n, 3), 0.1, kind), way)


def test_the_matrix_does_not_depend_on_the_signs_the_decomposition_chose():
    x = cloud()
    first, mirrored = fit_transform(x), fit_transform(-x)
    np.testing.assert_allclose(mirrored.matrix, first.matrix, rtol=0, atol=1e-12)
    assert (np.take_along_axis(first.matrix, np.abs(first.matrix).argmax(axis=0)[None], axis=0) > 0).all()
    assert fit_transform(x).tobytes() == first.tobytes()


def test_float32_rows_stay_float32_and_are_centred_before_they_are_rounded():
    x = cloud().astype(np.float32) + np.float32(1000)
    z = fit_transform(x)(x)
    assert z.dtype == np.float32
    np.testing.assert_allclose(z.astype(np.float64).mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(z.T @ z / len(z), np.eye(8), atol=1e-5)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: fit_transform(x, "pca"), "kind 'pca' is not one of whiten, centre"),
        (lambda x: fit_transform(x[0]), r"embeddings have shape \(8,\) and type float64; expected rows of numbers"),
        (lambda x: fit_transform(x[:1]), "there are 1 embeddings; a transform is fitted to at least 2"),
        (lambda x: fit_transform(np.where(x == x[4, 2], np.nan, x)), "row 4 of the embeddings holds NaN"),
        (lambda x: fit_transform(x, "centre", 3), "rank is 3; centring keeps every direction"),
        (lambda x: fit_transform(x, rank=0), "rank is 0; expected 1 to 8 for 300 embeddings of width 8"),
        (lambda x: fit_transform(x[:5], rank=5), "rank is 5; expected 1 to 4 for 5 embeddings of width 8"),
        (lambda x: fit_transform(x, rank=2.5), "rank is 2.5, a float; expected a whole number"),
        (lambda x: fit_transform(x)(x[:, :5]), r"embeddings have shape \(300, 5\); the transform takes .* width 8"),
        (lambda x: Transform("pca", x[0]), "kind 'pca' is not one of centre, whiten, linear"),
        (lambda x: Transform("whiten", x[0]), "kind 'whiten' needs a matrix"),
        (lambda x: Transform("centre", x[0], x), "kind 'centre' has no matrix"),
        (lambda x: Transform("whiten", x[0], x[:7]), r"matrix has shape \(7, 8\); expected 8 rows"),
        (lambda x: Transform("centre", x), r"mean has shape \(300, 8\)"),
        (lambda x: Transform("centre", x[0] / 0), "mean holds NaN or infinity"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_bad_arguments_get_one_sentence(call, words):
    with pytest.raises(InputError, match=words):
        call(cloud())


# --- in an encoder


@pytest.mark.parametrize("normalize", [False, True])
def test_encode_is_encode_then_transform(encoder, whitened, normalize):
    texts = sentences(30)
    expected = whitened.transform(encoder.encode(texts))
    if normalize:
        expected = expected / np.linalg.norm(expected, axis=1, keepdims=True)
    got = whitened.with_reading(normalize=normalize).encode(texts)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-6)
    assert got.shape == (30, 6) and got.dtype == np.float32 and whitened.dimension == 6
    assert whitened.encode(texts[0]).shape == (6,) and whitened.encode([]).shape == (0, 6)


def test_the_fit_is_to_the_bare_embeddings(encoder, whitened):
    """Neither the transform there was nor the scaling to length 1, which comes after, has a part in it."""
    again = with_fitted_transform(whitened.with_reading(normalize=True), sentences(120), rank=6)
    assert again.normalize and again.transform.tobytes() == whitened.transform.tobytes()
    z = whitened.encode(sentences(120)).astype(np.float64)
    np.testing.assert_allclose(z.T @ z / len(z), np.eye(6), atol=1e-4)


@pytest.mark.parametrize("kind", ["centre", "whiten"])
def test_save_and_load_keep_every_bit(encoder, tmp_path, kind):
    fitted = with_fitted_transform(encoder, sentences(60), kind)
    fitted.save(tmp_path)
    again = SentenceEncoder.load(tmp_path)
    assert again.transform.kind == kind and again.transform.tobytes() == fitted.transform.tobytes()
    assert again.fingerprint() == fitted.fingerprint() != encoder.fingerprint()
    assert again.encode(sentences(5)).tobytes() == fitted.encode(sentences(5)).tobytes()
    encoder.save(tmp_path)
    assert SentenceEncoder.load(tmp_path).transform is None
    assert not (tmp_path / "transform.safetensors").exists()


def test_a_folder_from_before_there_were_transforms_still_loads(encoder, tmp_path):
    encoder.save(tmp_path)
    assert "transform" not in json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    assert SentenceEncoder.load(tmp_path).transform is None


def test_the_transform_belongs_to_one_pooling_and_to_one_set_of_parameters(encoder, whitened):
    words = r"pooling 'cls' does not go with the model's transform \(whiten\), which was fitted to 'mean' embeddings"
    with pytest.raises(InputError, match=words):
        whitened.with_reading("cls")
    assert whitened.with_reading("mean", max_length=10).transform is whitened.transform
    assert whitened.with_transform(None).with_reading("cls").pooling == "cls"
    assert whitened.with_transform(None).fingerprint() == encoder.fingerprint()
    assert whitened.with_parameters(encoder.params).transform is None
    with pytest.raises(InputError, match="the transform takes rows of width 8, the encoder's are 16"):
        encoder.with_transform(fit_transform(cloud()))


def damaged(arrays, **changes):
    return {name: array for name, array in (arrays | changes).items() if array is not None}


@pytest.mark.parametrize(
    ("kind", "change", "words"),
    [
        ("whiten", {"mean": None}, r"holds \['matrix'\]; expected mean"),
        ("whiten", {"extra": np.zeros(2)}, r"holds \['extra', 'matrix', 'mean'\]"),
        ("whiten", {"matrix": None}, "kind 'whiten' needs a matrix"),
        ("centre", {}, "kind 'centre' has no matrix"),
        ("pca", {}, "kind 'pca' is not one of"),
        ("whiten", {"mean": np.zeros(5)}, r"matrix has shape \(16, 6\); expected 5 rows"),
        ("whiten", {"mean": np.zeros(5), "matrix": np.ones((5, 2))}, "takes rows of width 5; the encoder's are 16"),
        ("whiten", {"mean": np.full(16, np.nan)}, "mean holds NaN"),
        ("whiten", {"mean": np.zeros(16, np.float32)}, "not float64"),
        (3, {}, "transform is 3; expected a string"),
    ],
)
def test_a_damaged_transform_is_refused(whitened, tmp_path, kind, change, words):
    whitened.save(tmp_path)
    file, config = tmp_path / "transform.safetensors", tmp_path / "config.json"
    save_file(damaged(load_file(file), **change), file)
    write_json(config, json.loads(config.read_text(encoding="utf-8")) | {"transform": kind})
    with pytest.raises(CheckpointError, match=words):
        SentenceEncoder.load(tmp_path)


def test_a_transform_that_is_not_there_is_refused(whitened, tmp_path):
    whitened.save(tmp_path)
    (tmp_path / "transform.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"transform\.safetensors does not exist"):
        SentenceEncoder.load(tmp_path)


# --- as a Dense module of sentence-transformers


@pytest.mark.parametrize(("kind", "rank"), [("whiten", 3), ("whiten", None), ("centre", None)])
@pytest.mark.parametrize("pooling", ["cls", "avg_first_last"])
def test_an_export_is_read_back(tmp_path, pooling, kind, rank):
    encoder = SentenceEncoder.load(write_bert(tmp_path / "in")).with_reading(pooling, normalize=True)
    words = ["the cat", "a dog sees", "river in the old", "cats", "dog . dog", "the", "old rivers see", "a cat in"]
    fitted = with_fitted_transform(encoder, [*words, *SENTENCES], kind, rank)
    fitted.export(tmp_path / "out")
    again = SentenceEncoder.load(tmp_path / "out")
    assert (again.pooling, again.normalize, again.dimension) == (pooling, True, fitted.dimension)
    assert again.transform.kind == ("centre" if kind == "centre" else "linear")
    # the module stores -mean @ matrix in float32, and the sum cancels it
    rounding = 5e-6 if kind == "centre" else 2e-7 * np.abs(fitted.transform.mean @ fitted.transform.matrix).max()
    np.testing.assert_allclose(again.encode(SENTENCES), fitted.encode(SENTENCES), rtol=0, atol=rounding)
    again.export(tmp_path / "again")
    for path in sorted(p.relative_to(tmp_path / "out") for p in (tmp_path / "out").rglob("*") if p.is_file()):
        assert (tmp_path / "again" / path).read_bytes() == (tmp_path / "out" / path).read_bytes(), path


def with_linear(folder, weight, bias=None, settings=()):
    write_modules(write_bert(folder), "Pooling", "Dense")
    identity = "torch.nn.modules.linear.Identity"
    config = {"in_features": 8, "out_features": len(weight), "activation_function": identity}
    config["bias"] = bias is not None
    write_json(folder / "2_Dense" / "config.json", config | dict(settings))
    arrays = {"linear.weight": weight} | ({} if bias is None else {"linear.bias": bias})
    save_file({name: np.float32(array) for name, array in arrays.items()}, folder / "2_Dense" / "model.safetensors")
    return folder


def test_any_linear_dense_module_is_a_transform(tmp_path):
    weight, bias = np.float32(cloud(5)), np.float32(cloud(1, 5)[0])
    with_bias = SentenceEncoder.load(with_linear(tmp_path / "with", weight, bias))
    assert (with_bias.pooling, with_bias.dimension, with_bias.transform.kind) == ("mean", 5, "linear")
    texts = ["dogs", "the cat", ""]
    plain = SentenceEncoder.load(write_bert(tmp_path / "plain")).encode(texts)
    np.testing.assert_allclose(with_bias.encode(texts), plain @ weight.T + bias, rtol=1e-5, atol=1e-5)
    without = SentenceEncoder.load(with_linear(tmp_path / "without", weight))
    np.testing.assert_allclose(without.encode(texts), plain @ weight.T, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("weight", "bias", "settings", "words"),
    [
        (np.ones((4, 7)), np.ones(4), {}, r"linear\.weight has shape \(4, 7\); expected finite numbers \(K, 8\)"),
        (np.ones((4, 8)), np.ones(3), {}, r"linear\.bias has shape \(3,\)"),
        (np.full((4, 8), np.inf), np.ones(4), {}, "expected finite numbers"),
        (np.ones((2, 8)), np.array([1, 2]), {}, r"linear\.bias is not -mean @ matrix for any mean"),
        (np.ones((4, 8)), np.ones(4), {"use_residual": True}, "use_residual True is not supported"),
        (np.ones((4, 8)), np.ones(4), {"bias": False}, r"holds \['linear\.bias', 'linear\.weight'\]; expected"),
    ],
)
def test_a_linear_module_that_is_no_transform_is_refused(tmp_path, weight, bias, settings, words):
    with pytest.raises(CheckpointError, match=words):
        SentenceEncoder.load(with_linear(tmp_path, weight, bias, settings))


# --- the commands


def test_the_command_fits_and_saves(encoder, tmp_path, capsys):
    encoder.save(tmp_path / "model")
    text = write_sentences(tmp_path / "t.txt", 100)
    command = ["whiten", str(text), "--model", str(tmp_path / "model")]
    assert main([*command, "--rank", "5", "--out", str(tmp_path / "w"), "--json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("w: mean embeddings, whitening 16 -> 5 numbers, fitted to 100 sentences")
    assert "fewer than 5 for each of 16 coordinates" not in "".join(lines)
    saved = SentenceEncoder.load(tmp_path / "w")
    report = json.loads(lines[-1])
    assert report["fingerprint"] == saved.fingerprint() and (report["inputs"], report["outputs"]) == (16, 5)
    expected = with_fitted_transform(encoder, sentences(100), rank=5)
    assert saved.transform.tobytes() == expected.transform.tobytes()
    assert main(["info", str(tmp_path / "w")]) == 0
    assert "transform        whiten, 16 -> 5" in capsys.readouterr().out
    assert main([*command, "--kind", "centre", "--pooling", "cls", "--out", str(tmp_path / "c")]) == 0
    centred = SentenceEncoder.load(tmp_path / "c")
    assert (centred.transform.kind, centred.pooling) == ("centre", "cls")
    assert main(["export", str(tmp_path / "c"), "--to", str(tmp_path / "x")]) == 0
    assert "cls pooling, centre transform 16 -> 16, at most 24 tokens" in capsys.readouterr().out


def test_the_command_fits_to_all_texts_of_a_table_and_says_when_they_are_few(encoder, tmp_path, capsys):
    encoder.save(tmp_path / "model")
    rows = list(zip(sentences(20), sentences(40)[20:], strict=True))
    lines = ["sentence1\tsentence2\tscore", *(f"{a}\t{b}\t{i % 5}" for i, (a, b) in enumerate(rows))]
    (tmp_path / "t.tsv").write_text("\n".join(lines), encoding="utf-8")
    command = ["whiten", tmp_path / "t.tsv", "--model", tmp_path / "model", "--out", tmp_path / "w"]
    assert main([str(word) for word in command]) == 0
    output = capsys.readouterr().out.splitlines()
    assert output[0].endswith("fitted to 40 sentences")
    assert output[1].startswith("Whitening is fitted to 40 sentences, fewer than 5 for each of 16 coordinates")
    expected = with_fitted_transform(encoder, [text for row in rows for text in row])
    assert SentenceEncoder.load(tmp_path / "w").transform.tobytes() == expected.transform.tobytes()


def test_the_command_refuses_before_it_encodes(encoder, tmp_path, capsys, monkeypatch):
    encoder.save(tmp_path / "model")
    text = write_sentences(tmp_path / "t.txt", 100)
    monkeypatch.setattr(SentenceEncoder, "encode", lambda *a, **k: pytest.fail("encoded"))
    for options, words in (
        (["--out", tmp_path / "model"], "model' is in use; expected a new or empty folder to write to"),
        (["--out", text / "w"], "w' cannot be written (File exists); give another place"),
        (["--out", tmp_path / "w", "--rank", "17"], "rank is 17; expected 1 to 16 for 100 embeddings of width 16"),
        (["--out", tmp_path / "w", "--rank", "3", "--kind", "centre"], "rank is 3; centring keeps every direction"),
        (["--out", tmp_path / "w", "--rank", "1.5"], "'1.5' is not a whole number"),
    ):
        try:
            code = main([str(a) for a in ("whiten", text, "--model", tmp_path / "model", *options)])
        except SystemExit as stop:
            code = stop.code
        assert code == 2 and words in capsys.readouterr().err
    assert not (tmp_path / "w").exists()


def test_training_goes_on_without_the_transform_and_says_so(whitened, tmp_path):
    whitened.save(tmp_path / "w")
    text = write_sentences(tmp_path / "t.txt")
    options = {name: value for name, value in TINY.items() if name not in ("layers", "width", "heads", "vocab")}
    with pytest.warns(UserWarning, match=r"is trained without its transform \(whiten\); fit one anew afterwards"):
        run = train(text, init=str(tmp_path / "w"), out=tmp_path / "run", progress=False, **options | {"steps": 1})
    assert run.encoder.transform is None and SentenceEncoder.load(tmp_path / "run").dimension == 16


def test_a_transform_is_not_fitted_to_the_letters_of_one_text(encoder):
    with pytest.raises(InputError, match="sentences is 'one text', a str; expected a list of strings"):
        with_fitted_transform(encoder, "one text", "centre")
