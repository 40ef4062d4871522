import json
import re
import warnings

import numpy as np
import pytest
from tiny import sentences

from nano_simcse import EncoderConfig, SentenceEncoder
from nano_simcse.data.tokenizer import Tokenizer
from nano_simcse.errors import CheckpointError, InputError
from nano_simcse.layers import POOLINGS
from nano_simcse.model import new_encoder
from nano_simcse.parameters import Parameters


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(sentences(), 150)


def build(tokenizer, pooling="mean", head=False, seed=0):
    config = EncoderConfig(tokenizer.vocab_size, layers=2, width=16, heads=2, max_positions=24, head=head)
    return new_encoder(config, tokenizer, pooling, 24, seed)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_save_and_load_give_the_same_embeddings(tokenizer, tmp_path, pooling):
    encoder = build(tokenizer, pooling, head=True)
    encoder.save(tmp_path)
    again = SentenceEncoder.load(tmp_path)
    assert again.encode(sentences(5)).tobytes() == encoder.encode(sentences(5)).tobytes()
    assert again.pooling == pooling
    assert again.fingerprint() == encoder.fingerprint()


def test_fingerprint_sees_parameters_and_pooling(tokenizer):
    prints = {build(tokenizer, p, seed=s).fingerprint() for p, s in (("mean", 0), ("mean", 1), ("avg_top2", 0))}
    assert len(prints) == 3


def test_fingerprint_sees_how_a_text_is_brought_to_tokens(tokenizer, tmp_path):
    """The same tokens and parameters, another normaliser: other ids of one text, and so other embeddings."""
    encoder = build(tokenizer)
    encoder.save(tmp_path)
    whole = (tmp_path / "tokenizer.json").read_text(encoding="utf-8")
    (tmp_path / "tokenizer.json").write_text(whole.replace('"lowercase": true', '"lowercase": false'), encoding="utf-8")
    cased = SentenceEncoder.load(tmp_path)
    assert cased.tokenizer.tokens(range(150)) == tokenizer.tokens(range(150))
    assert np.abs(cased.encode("The CAT") - encoder.encode("The CAT")).max() > 0.01
    assert cased.fingerprint() != encoder.fingerprint()


@pytest.mark.parametrize(("name", "shape"), [
    ("layers.1.feed_forward.up.bias", None), ("embeddings.word", (150, 17)), ("layers.2.feed_forward.up.bias", (64,)),
])  # fmt: skip
def test_parameters_of_another_config_are_refused(tokenizer, name, shape):
    encoder = build(tokenizer)
    expected = encoder.params.shapes.get(name)
    shapes = {**encoder.params.shapes, name: shape}
    if shape is None:
        del shapes[name]
    message = re.escape(f"params has {name} of shape {shape}; expected {expected}, as the config says")
    with pytest.raises(InputError, match=message):
        SentenceEncoder(Parameters(shapes), encoder.config, tokenizer, max_length=24)


def test_a_tokenizer_with_more_tokens_than_vectors_is_refused(tokenizer):
    encoder = build(tokenizer)
    larger = Tokenizer.train(sentences(), 160)
    message = f"the tokenizer has {larger.vocab_size} tokens, the config vectors for {tokenizer.vocab_size}"
    with pytest.raises(InputError, match=message):
        SentenceEncoder(encoder.params, encoder.config, larger, max_length=24)
    config = EncoderConfig(160, layers=2, width=16, heads=2, max_positions=24)  # room to spare is no fault
    assert new_encoder(config, tokenizer, "mean", 24, 0).encode("the cat").shape == (16,)


def test_a_tilde_is_the_home_folder_for_writing_as_for_reading(tokenizer, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    encoder = build(tokenizer)
    encoder.save("~/saved")
    encoder.export("~/exported")
    tokenizer.save("~/tokens")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["exported", "saved", "tokens"]
    for place in ("~/saved", tmp_path / "saved"):
        assert SentenceEncoder.load(place).fingerprint() == encoder.fingerprint()
    assert Tokenizer.load("~/tokens").tobytes() == tokenizer.tobytes()


def test_one_string_gives_one_vector(tokenizer):
    encoder = build(tokenizer)
    one, many = encoder.encode("the cat watches two birds"), encoder.encode(["the cat watches two birds"])
    assert one.shape == (16,) and many.shape == (1, 16) and one.dtype == np.float32
    np.testing.assert_array_equal(one, many[0])
    assert encoder.encode([]).shape == (0, 16)


def test_order_and_batch_size_change_nothing_but_rounding(tokenizer):
    encoder = build(tokenizer)
    encoder = encoder.with_parameters(encoder.params.astype(np.float64))
    texts = [" ".join(text.split()[: 3 + i % 9]) for i, text in enumerate(sentences(40))]
    reference = encoder.encode(texts, batch_size=64)
    np.testing.assert_allclose(encoder.encode(texts, batch_size=3), reference, atol=1e-7, rtol=0)  # float32 output
    permutation = np.random.default_rng(0).permutation(len(texts))
    shuffled = encoder.encode([texts[i] for i in permutation], batch_size=7)
    np.testing.assert_allclose(shuffled, reference[permutation], atol=1e-7, rtol=0)


def test_normalised_rows_and_similarity(tokenizer):
    encoder = build(tokenizer)
    x = encoder.encode(sentences(4))
    unit = encoder.encode(sentences(4), normalize_embeddings=True)
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1, atol=1e-6)
    cosine = encoder.similarity(x, x[:2])
    assert cosine.shape == (4, 2)
    np.testing.assert_allclose(cosine[1, 0], x[1] @ x[0] / np.linalg.norm(x[1]) / np.linalg.norm(x[0]), rtol=1e-5)
    np.testing.assert_allclose(encoder.similarity(x[0], x[0]), [[1]], atol=1e-6)


def test_the_head_is_read_by_cls_alone(tokenizer):
    """In use "cls" goes through the tanh head, "cls_before_pooler" does not: the two named options differ."""
    head, raw = build(tokenizer, "cls", head=True), build(tokenizer, "cls_before_pooler", head=True)
    a, b = head.encode("a robot draws the river"), raw.encode("a robot draws the river")
    expected = np.tanh(b @ head.params["head.weight"] + head.params["head.bias"])
    np.testing.assert_allclose(a, expected, atol=1e-6)
    assert np.abs(a - b).max() > 0.1


def test_truncation_is_counted_and_warned_about_once(tokenizer):
    encoder = build(tokenizer)
    long = "the cat " * 30
    with pytest.warns(UserWarning, match="1 of 2 sentences were cut to 24 tokens"):
        x = encoder.encode([long, "a dog"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder.encode([long])
    assert encoder.truncated == 2
    shorter = encoder.encode("the cat " * 20)
    np.testing.assert_allclose(x[0], shorter, atol=1e-6)  # both keep the same first 23 tokens


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda e: e.encode(["fine", 3]), "sentence 1 is 3, a int"),
        (lambda e: e.encode(["x"], batch_size=0), "batch_size is 0"),
        (lambda e: e.encode(None), "sentences is None, a NoneType; expected a string or a list of strings"),
        (lambda e: e.encode(5), "sentences is 5, a int"),
        (lambda e: e.encode(b"abc"), "sentences is b'abc', a bytes"),
        (lambda e: e.encode(["x"], batch_size=2.5), "batch_size is 2.5, a float; expected a whole number"),
        (lambda e: e.encode(["x"], batch_size="64"), "batch_size is '64', a str"),
        (lambda e: e.encode(["x"], batch_size=None), "batch_size is None"),
        (lambda e: e.encode(["x"], batch_size=True), "batch_size is True"),
        (lambda e: e.encode(["x"], max_length=5.5), "max_length is 5.5, a float; expected a whole number"),
        (lambda e: e.with_reading(max_length="24"), "max_length is '24', a str"),
        (lambda e: e.similarity(np.ones((2, 3)), np.ones((2, 4))), "a are 3 wide and rows of b 4"),
        (lambda e: e.similarity("a", "b"), "a has shape .* expected numbers"),
        (lambda e: e.similarity(np.ones(3), ["x", "y"]), "b has shape"),
        (lambda e: e.similarity([], np.ones(3)), r"a has shape \(0,\)"),
        (lambda e: e.similarity([[1, 2], [3]], np.ones(2)), "a is not a table of numbers"),
        (lambda e: e.similarity(None, np.ones(2)), "a has shape"),
        (lambda e: e.similarity([[1, 2], [np.nan, 1]], np.ones(2)), "row 1 of a holds NaN"),
        (lambda e: e.similarity(np.ones(2), np.zeros(2)), "row 0 is the zero vector"),
        (lambda e: SentenceEncoder.load("x", device=3), "device is 3, a int; expected cpu"),
        (lambda e: SentenceEncoder.load("x", device=None), "device is None"),
        (lambda e: e.encode(["x"], max_length=25), "max_length is 25; expected 3 to 24"),
        (lambda e: SentenceEncoder(e.params, e.config, e.tokenizer, "median", 24), "pooling 'median'"),
    ],
)
def test_bad_arguments_get_one_sentence(tokenizer, call, words):
    with pytest.raises(InputError, match=words):
        call(build(tokenizer))


def test_foreign_folders_are_refused(tokenizer, tmp_path):
    with pytest.raises(CheckpointError, match="does not exist"):
        SentenceEncoder.load(tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match=r"config\.json does not exist"):
        SentenceEncoder.load(tmp_path)
    build(tokenizer).save(tmp_path)
    config = (tmp_path / "config.json").read_text(encoding="utf-8")
    (tmp_path / "config.json").write_text(config.replace('"width": 16', '"width": 32'), encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"embeddings\.word has shape"):
        SentenceEncoder.load(tmp_path)
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(CheckpointError, match="not a description"):
        SentenceEncoder.load(tmp_path)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("max_length", "64", 'max_length is "64"; expected a whole number'),
        ("max_length", None, "max_length is null; expected a whole number"),
        ("max_length", 25, "max_length is 25; expected 3 to 24"),
        ("normalize", "maybe", 'normalize is "maybe"; expected true or false'),
        ("pooling", 3, "pooling is 3; expected a string"),
        ("pooling", "max", "pooling 'max' is not one of"),
        ("encoder", [], "does not describe an encoder"),
        ("layers", 2.0, "layers is 2.0; expected a whole number"),
        ("layers", True, "layers is true; expected a whole number"),
        ("heads", 3, "width 16 is not divisible by heads 3"),
        ("heads", 0, "heads is 0; expected at least 1"),
        ("vocab_size", "many", 'vocab_size is "many"'),
        ("eps", float("nan"), "eps is NaN; expected a finite number"),
        ("eps", -1, "eps is -1; expected at least 0"),
        ("gelu", "relu", "gelu is 'relu'; expected erf or tanh"),
        ("mlm", 1, "mlm is 1; expected true or false"),
        ("wings", 2, "wings"),
    ],
)
def test_a_damaged_description_names_file_and_field(tokenizer, tmp_path, field, value, words):
    build(tokenizer).save(tmp_path)
    file = tmp_path / "config.json"
    description = json.loads(file.read_text(encoding="utf-8"))
    (description if field in description else description["encoder"])[field] = value
    file.write_text(json.dumps(description), encoding="utf-8")
    with pytest.raises(CheckpointError, match=re.escape(words)) as error:
        SentenceEncoder.load(tmp_path)
    assert str(file) in str(error.value)


@pytest.mark.parametrize("field", ["pooling", "max_length", "encoder"])
def test_a_description_without_a_field_is_refused(tokenizer, tmp_path, field):
    build(tokenizer).save(tmp_path)
    description = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    del description[field]
    (tmp_path / "config.json").write_text(json.dumps(description), encoding="utf-8")
    with pytest.raises(CheckpointError, match=f"does not describe an encoder.* {field}"):
        SentenceEncoder.load(tmp_path)


def test_weights_that_are_not_numbers_are_refused(tokenizer, tmp_path):
    encoder = build(tokenizer)
    encoder.params["layers.1.feed_forward.up.bias"][3] = np.nan
    encoder.save(tmp_path / "own")
    encoder.export(tmp_path / "exported")
    with pytest.raises(CheckpointError, match=r"layers\.1\.feed_forward\.up\.bias holds NaN"):
        SentenceEncoder.load(tmp_path / "own")
    with pytest.raises(CheckpointError, match=r"exported: layers\.1\.feed_forward\.up\.bias holds NaN"):
        SentenceEncoder.load(tmp_path / "exported")


def test_a_vocabulary_cut_short_is_refused(tokenizer, tmp_path):
    encoder = build(tokenizer)
    encoder.save(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    assert SentenceEncoder.load(tmp_path).fingerprint() == encoder.fingerprint()
    whole = (tmp_path / "vocab.txt").read_text(encoding="utf-8").split("\n")
    for lines in ([*whole[:-2], ""], [*whole[:-1], "extra", ""]):
        (tmp_path / "vocab.txt").write_text("\n".join(lines), encoding="utf-8")
        with pytest.raises(CheckpointError, match=f"has a vocabulary of {len(lines) - 1} tokens, its encoder one of"):
            SentenceEncoder.load(tmp_path)


def test_no_sentence_is_similar_to_nothing(tokenizer):
    encoder = build(tokenizer)
    assert encoder.similarity(encoder.encode([]), encoder.encode(sentences(2))).shape == (0, 2)


def test_a_save_that_fails_leaves_the_model_that_was_there(tokenizer, tmp_path, monkeypatch):
    first, second = build(tokenizer, seed=0), build(tokenizer, "cls", seed=1)
    first.save(tmp_path)

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("nano_simcse.model.write_json", full)
    with pytest.raises(OSError, match="No space left"):
        second.save(tmp_path)
    assert SentenceEncoder.load(tmp_path).fingerprint() == first.fingerprint()
    monkeypatch.undo()
    second.save(tmp_path)
    assert SentenceEncoder.load(tmp_path).fingerprint() == second.fingerprint()
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "config.json", "model.safetensors", "tokenizer.json", "vocab.txt"
    ]  # fmt: skip
