"""The tokenizer: a fixed recipe, a vocabulary that repeats, files that are checked."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from nano_simcse.data.tokenizer import SPECIAL_TOKENS, Tokenizer
from nano_simcse.errors import CheckpointError, InputError

TEXT = [
    "Dropout is the noise, and the noise is the augmentation.",
    "The same sentence twice, under two masks, gives two views.",
    "Views of one sentence attract; views of other sentences repel.",
    "Temperature divides the cosines before the softmax.",
]


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(TEXT, vocab_size=150, progress=False)


def test_the_vocabulary_begins_with_the_special_tokens(tokenizer):
    assert tokenizer.tokens(range(5)) == list(SPECIAL_TOKENS)
    ids = (tokenizer.pad_id, tokenizer.unk_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id)
    assert ids == (0, 1, 2, 3, 4)
    assert 60 < tokenizer.vocab_size <= 150


def test_encode_puts_marks_around_and_ignores_case_and_accents(tokenizer):
    (row, upper, empty, spaces), cut = tokenizer.encode(["the noise", "Th\u00e9 NOISE", "", " \t\x07"], max_length=32)
    assert row.dtype == np.int32 and cut == 0
    assert row[0] == tokenizer.cls_id and row[-1] == tokenizer.sep_id
    assert tokenizer.tokens(row)[1] == "the"
    assert "".join(tokenizer.tokens(row[1:-1])).replace("##", "") == "thenoise"
    np.testing.assert_array_equal(row, upper)
    assert empty.tolist() == spaces.tolist() == [tokenizer.cls_id, tokenizer.sep_id]


def test_punctuation_stands_alone_and_unknown_words_are_unk(tokenizer):
    (row,), _ = tokenizer.encode(["views,the \u4e2d"], max_length=32)
    assert tokenizer.tokens(row)[1:-1] == ["views", ",", "the", "[UNK]"]


def test_truncation_keeps_sep_last_and_is_counted(tokenizer):
    whole, _ = tokenizer.encode(TEXT, max_length=1000)
    longest = max(map(len, whole))
    assert tokenizer.encode(TEXT, max_length=longest)[1] == 0
    for limit in (2, 3, 9):
        rows, cut = tokenizer.encode([*TEXT, "the"], limit)
        assert cut == (5 if limit == 2 else 4)
        assert [len(row) for row in rows[:4]] == [limit] * 4
        for row, full in zip(rows, whole, strict=False):
            assert row.tolist() == [*full[: limit - 1].tolist(), tokenizer.sep_id]


ODD = ["\ud800 lone \udfff", "nul \x00 and \x1b[0m", "\ufffe\uffff", "x" * 5000, "\U0001f600", "[SEP]"]


@pytest.mark.parametrize("text", ODD)
def test_odd_text_gives_ids_that_exist(tokenizer, text):
    (row,), _ = tokenizer.encode([text], max_length=64)
    assert row[0] == tokenizer.cls_id and row[-1] == tokenizer.sep_id
    assert 0 <= row.min() and row.max() < tokenizer.vocab_size


def test_bad_arguments(tokenizer):
    with pytest.raises(InputError, match="one string"):
        tokenizer.encode("the noise", 8)
    with pytest.raises(InputError, match="sentence 1 is a NoneType"):
        tokenizer.encode(["fine", None], 8)
    with pytest.raises(InputError, match="max_length 1 "):
        tokenizer.encode(["fine"], 1)
    for outside in (-1, tokenizer.vocab_size):
        with pytest.raises(InputError, match=f"token id {outside} is not in the vocabulary"):
            tokenizer.tokens([outside])
    with pytest.raises(InputError, match="vocabulary size 6 is too small"):
        Tokenizer.train(TEXT, 6)
    with pytest.raises(InputError, match="vocabulary size 1000000000000 is too large; expected at most 16777216"):
        Tokenizer.train(TEXT, 10**12)
    with pytest.raises(InputError, match="no words"):
        Tokenizer.train(["x" * 101], 100)
    with pytest.raises(InputError, match="no words"):
        Tokenizer.train(["", "  "], 100)


def test_words_that_are_unknown_anyway_take_no_part_in_training(tokenizer):
    with_long = Tokenizer.train([*TEXT, "q" * 101, "zw" * 10**6], 150, progress=False)
    assert with_long.tokens(range(with_long.vocab_size)) == tokenizer.tokens(range(tokenizer.vocab_size))
    assert with_long.encode(["t" * 101], 8)[0][0].tolist() == [2, 1, 3]
    at_the_limit = Tokenizer.train([*TEXT, "z" * 100], 150, progress=False)
    assert "z" in at_the_limit.tokens(range(at_the_limit.vocab_size))


@pytest.mark.parametrize("size", [7, 30, 64])
def test_a_small_vocabulary_is_not_exceeded(size):
    assert Tokenizer.train(TEXT, size, progress=False).vocab_size <= size


def test_save_and_load_agree_by_either_file(tokenizer, tmp_path):
    tokenizer.save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tokenizer.json", "vocab.txt"]
    by_json = Tokenizer.load(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    by_list = Tokenizer.load(tmp_path)
    wanted, _ = tokenizer.encode([*TEXT, "[MASK] token"], 16)
    for other in (by_json, by_list):
        assert other.vocab_size == tokenizer.vocab_size
        for row, again in zip(wanted, other.encode([*TEXT, "[MASK] token"], 16)[0], strict=True):
            np.testing.assert_array_equal(row, again)


def test_a_loaded_file_cannot_impose_padding_or_a_length(tokenizer, tmp_path):
    tokenizer.save(tmp_path)
    settings = json.loads((tmp_path / "tokenizer.json").read_text(encoding="utf-8"))
    settings["truncation"] = {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0}
    settings["padding"] = {
        "strategy": {"Fixed": 50}, "direction": "Right", "pad_to_multiple_of": None,
        "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]",
    }  # fmt: skip
    settings["post_processor"] = None
    (tmp_path / "tokenizer.json").write_text(json.dumps(settings), encoding="utf-8")
    (row,), _ = Tokenizer.load(tmp_path).encode([TEXT[0]], 64)
    np.testing.assert_array_equal(row, tokenizer.encode([TEXT[0]], 64)[0][0])


def test_case_is_kept_when_the_configuration_says_so(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join([*SPECIAL_TOKENS, "The", "the"]) + "\n", encoding="utf-8")
    assert Tokenizer.load(tmp_path).encode(["The"], 8)[0][0].tolist() == [2, 6, 3]
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}', encoding="utf-8")
    assert Tokenizer.load(tmp_path).encode(["The"], 8)[0][0].tolist() == [2, 5, 3]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (None, "", "holds no tokenizer"),
        ("vocab.txt", "[PAD]\n[UNK]\n[CLS]\nthe\n", r"vocab\.txt lacks \[SEP\], \[MASK\]"),
        ("vocab.txt", "\n".join([*SPECIAL_TOKENS, "the", "the"]), "lists 'the' more than once"),
        ("tokenizer.json", '{"version": "1.0", "model": ', r"tokenizer\.json is not a tokenizer file"),
        ("tokenizer.json", "{}", r"tokenizer\.json is not a tokenizer file"),
    ],
)
def test_bad_folders(tmp_path, name, content, message):
    if name:
        (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(CheckpointError, match=message):
        Tokenizer.load(tmp_path)


def test_bytes_that_are_not_utf8_are_a_checkpoint_error(tmp_path):
    (tmp_path / "vocab.txt").write_bytes(b"[PAD]\n\xff\n")
    with pytest.raises(CheckpointError, match="cannot be read"):
        Tokenizer.load(tmp_path)


PROGRAM = """
import hashlib
from nano_simcse.data.tokenizer import Tokenizer
# Made-up words with many ties: each is as frequent as most others, and so are its letters.
letters = "abcdefghijklmnopqrstuvwxyz\u00df\u03b1\u03b2\u03b3"
words = ["".join(letters[n // 30**k * (7 + k) % 30] for k in range(5)) for n in range(0, 10**6, 331)]
sentences = [" ".join(words[at : at + 4]) for at in range(0, len(words), 2)]
tokenizer = Tokenizer.train(sentences, 600, progress=False)
print(hashlib.sha256("\\n".join(tokenizer.tokens(range(tokenizer.vocab_size))).encode()).hexdigest())
"""


def test_training_repeats_across_processes_hash_seeds_and_thread_counts():
    found = []
    for seed, threads, parallel in (("1", "1", "false"), ("2", "4", "true")):
        settings = {"PYTHONHASHSEED": seed, "RAYON_NUM_THREADS": threads, "TOKENIZERS_PARALLELISM": parallel}
        environment = {**os.environ, **settings, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "utf-8"}
        command = [sys.executable, "-c", PROGRAM]
        found.append(subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", check=True).stdout)
    assert found[0] == found[1] and len(found[0].strip()) == 64


def test_order_of_the_sentences_does_not_matter(tokenizer):
    again = Tokenizer.train(TEXT[::-1], vocab_size=150, progress=False)
    assert again.tokens(range(again.vocab_size)) == tokenizer.tokens(range(tokenizer.vocab_size))


def test_real_documentation_is_covered(default_corpus):
    some = default_corpus.sentences[::10]
    tokenizer = Tokenizer.train(some, 4000, progress=False)
    rows, _ = tokenizer.encode(some, 256)
    ids = np.concatenate(rows)
    assert tokenizer.vocab_size == 4000
    assert np.mean(ids == tokenizer.unk_id) < 0.001
    assert len(ids) / sum(len(sentence.split()) for sentence in some) < 1.8
