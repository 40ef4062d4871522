"""What the readers take, and the one sentence they answer bad files with."""

import gzip
import json

import pytest
from shared_data import shared_path

from nano_simcse.data.readers import (
    STSPair,
    is_rated,
    read_sentences,
    read_sts,
    read_texts,
    read_training_file,
    read_training_files,
)
from nano_simcse.data.records import read_lines
from nano_simcse.errors import InputError


def write(path, content: str | bytes):
    data = content.encode("utf-8") if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "plain", "a.GZ.text"])
def test_sentences_are_the_lines_that_are_not_blank(tmp_path, name):
    text = "\ufeffA first one.\r\n\n   \n  Zwei\u2028Teile \x0b\x85 bleiben.\t\nno newline at the end"
    found = read_sentences(write(tmp_path / name, text))
    assert found == ["A first one.", "Zwei\u2028Teile \x0b\x85 bleiben.", "no newline at the end"]
    assert read_training_file(tmp_path / name).kind == "sentences"


def test_line_numbers_count_blank_lines(tmp_path):
    assert list(read_lines(write(tmp_path / "a", "x\n\ny"))) == [(1, "x"), (2, ""), (3, "y")]


PAIRS = [("a man", "a person"), ('she said "no"', "she refused")]
TRIPLES = [("a man", "a person", "a dog"), ('she said "no"', "she refused", "she agreed")]


@pytest.mark.parametrize("rows", [PAIRS, TRIPLES])
@pytest.mark.parametrize("ending", ["tsv", "tsv.gz", "csv", "jsonl", "jsonl.gz"])
def test_pairs_and_triples_in_every_form(tmp_path, rows, ending):
    def line(row):
        if ending.startswith("tsv"):
            return "\t".join(row)
        if ending == "csv":
            return ",".join('"' + cell.replace('"', '""') + '"' for cell in row)
        return json.dumps(row)

    text = read_training_file(write(tmp_path / f"a.{ending}", "\n".join(map(line, rows)) + "\n\n"))
    assert text.rows == rows
    assert text.kind == ("pairs" if rows is PAIRS else "triples")


@pytest.mark.parametrize(
    ("name", "content", "row"),
    [
        ("a.csv", "sent0,sent1,hard_neg\nx,y,z\n", ("x", "y", "z")),
        ("a.tsv", "source\tpremise\tentailment\tcontradiction\nsnli\tx\ty\tz\n", ("x", "y", "z")),
        ("a.tsv", "subset\tsentence2\tsentence1\tscore\nMSR\ty\tx\t3.0\n", ("x", "y")),
        ("a.csv", "\ufeffAnchor,Positive\r\nx,y\r\n", ("x", "y")),
        ("a.jsonl", '{"negative": "z", "positive": "y", "anchor": "x"}\n', ("x", "y", "z")),
        ("a.json", '{"sentence1": "x", "sentence2": "y", "score": 1}\n', ("x", "y")),
        ("a.jsonl", '{"premise": "x", "hypothesis": "y"}\n', ("x", "y")),
        ("a.csv", '"two\nlines",y\n', ("two\nlines", "y")),
        ("a.tsv", 'a "b\ty\n', ('a "b', "y")),
    ],
)
def test_columns_are_taken_by_name_when_they_have_names(tmp_path, name, content, row):
    assert read_training_file(write(tmp_path / name, content)).rows == [row]


BAD = [
    ("a.tsv", "x\ty\n\nx\ty\tz\n", r"line 3: 3 columns; expected 2$"),
    ("a.tsv", "x\n", r"line 1: 1 column; expected 2 \(anchor, positive\) or 3"),
    ("a.tsv", "1\t2\t3\t4\n", r"line 1: 4 columns; expected 2"),
    ("a.tsv", "source\tanchor\tpositive\ns\tx\n", r"line 2: 2 columns; expected 3 as in the header"),
    ("a.tsv", "x\ty\nx\t \n", r"line 2: ' ' where a sentence was expected"),
    ("a.tsv", "anchor\tpositive\n", r"has no usable row"),
    ("a.csv", 'x,"y\n', r"line 1: broken CSV"),
    ("a.jsonl", '["x", "y"]\n["x", \n', r"line 2: broken JSON"),
    ("a.json", '[\n["x", "y"]\n]\n', r"line 1: broken JSON \(.*\); expected one JSON object or list a line$"),
    ("a.json", '[{"a": 1}, {"b": 2}]', r"line 1: a list of rows; expected one JSON object or list a line$"),
    ("a.jsonl", '["x", 3]\n', r"line 1: 3 where a sentence was expected"),
    ("a.jsonl", '"x"\n', r"line 1: '\"x\"'; expected a list"),
    ("a.tsv", "text1\ttext2\trating\nx\ty\t4.4\nx\tz\t-1\n", r"a\.tsv has numbers in its third column"),
    ("a.jsonl", '["x", "y", "4.4"]\n', r"a\.jsonl has numbers in its third column, where sentences were expected"),
    ("a.jsonl", '{"text": "x"}\n', r"line 1: the keys 'text'; expected anchor and positive"),
    ("a.txt", "", r"a\.txt is empty$"),
    ("a.txt", "\n \n\r\n", r"no usable sentence"),
    ("a.txt", b"fine\nalso fine\nbad \xff byte\n", r"not UTF-8: byte 0xff at line 3, byte offset 19$"),
    ("a.txt", "x".encode("utf-16"), r"not UTF-8: byte 0xff at line 1, byte offset 0$"),
]


@pytest.mark.parametrize(("name", "content", "message"), BAD)
def test_bad_training_files(tmp_path, name, content, message):
    with pytest.raises(InputError, match=message) as caught:
        read_training_file(write(tmp_path / name, content))
    assert "a." in str(caught.value) and "\n" not in str(caught.value)


def test_a_cell_of_any_length_is_read(tmp_path):
    long = "word " * 60_000
    assert read_training_file(write(tmp_path / "a.csv", f"{long},y\n")).rows == [(long.strip(), "y")]


def test_a_tilde_is_the_home_folder(tmp_path, monkeypatch):
    for home in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(home, str(tmp_path))
    write(tmp_path / "a.tsv", "x\ty\n")
    write(tmp_path / "empty.txt", "")
    assert read_training_file("~/a.tsv").rows == [("x", "y")]
    with pytest.raises(InputError, match=r"is empty$"):
        read_sentences("~/empty.txt")


def test_files_that_are_not_there_or_not_files(tmp_path):
    with pytest.raises(InputError, match=r"none\.txt does not exist"):
        read_sentences(tmp_path / "none.txt")
    with pytest.raises(InputError, match="is a folder"):
        read_sentences(tmp_path)
    whole = gzip.compress(b"one line\n" * 5000)
    for content in (whole[: len(whole) // 2], b"plain text", whole[:-6] + b"wrong!"):
        (tmp_path / "cut.txt.gz").write_bytes(content)
        with pytest.raises(InputError, match="cut short or not gzip"):
            read_sentences(tmp_path / "cut.txt.gz")


def test_files_of_one_kind_are_joined_and_others_refused(tmp_path):
    first, second = write(tmp_path / "a.tsv", "a\tb\n"), write(tmp_path / "b.jsonl", '["c", "d"]\n')
    assert read_training_files([first, second]).rows == [("a", "b"), ("c", "d")]
    with pytest.raises(InputError, match=r"a\.tsv holds pairs and .*c\.txt holds sentences"):
        read_training_files([first, second, write(tmp_path / "c.txt", "a sentence\n")])


def test_sts_in_every_form(tmp_path):
    expected = [STSPair("news", "x", "y", 4.5), STSPair("", "p", 'q "r', 0.0)]
    tsv = '\nsubset\tsentence1\tsentence2\tscore\nnews\tx\ty\t4.5\n\tp\tq "r\t0\n'
    csv = 'score,sentence2,sentence1,subset\n4.5,y,x,news\n0,"q ""r",p,\n'
    rows = [{"subset": "news", "sentence1": "x", "sentence2": "y", "score": 4.5}]
    rows += [{"sentence1": "p", "sentence2": 'q "r', "score": 0}]
    assert read_sts(write(tmp_path / "a.tsv", tsv)) == expected
    assert read_sts(write(tmp_path / "a.csv.gz", csv)) == expected
    assert read_sts(write(tmp_path / "a.jsonl.gz", "\n".join(map(json.dumps, rows)))) == expected


HEADER = "sentence1\tsentence2\tscore\n"


def test_scores_may_have_the_name_of_the_published_sets(tmp_path):
    for name in ("score", "similarity_score", "similarity", "relatedness_score"):
        file = write(tmp_path / "a.tsv", f"sentence1\tsentence2\t{name.upper()}\nx\ty\t4.4\n")
        assert is_rated(file) and read_sts(file)[0].score == 4.4
    assert not is_rated(write(tmp_path / "a.tsv", "sentence1\tscore\nx\t1\n"))


def test_the_texts_of_a_file_of_any_form(tmp_path):
    for name, content, texts in (
        ("a.txt", "x\n\ny\n", ["x", "y"]),
        ("a.tsv", HEADER + "x\ty\t1\nz\tx\t2\n", ["x", "y", "z", "x"]),
        ("a.tsv", "x\ty\tz\n", ["x", "y", "z"]),
    ):
        assert read_texts(write(tmp_path / name, content)) == texts


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", HEADER + "x\ty\t1\nx\ty\tgood\n", r"line 3: score 'good'; expected a finite number"),
        ("a.tsv", HEADER + "x\ty\tnan\n", r"line 2: score 'nan'"),
        ("a.tsv", HEADER + "x\ty\n", r"line 2: 2 columns; expected 3 as in the header"),
        ("a.tsv", "x\ty\t1.0\n", r"line 1: the names 'x', 'y', '1\.0'; expected sentence1, sentence2, score"),
        ("a.jsonl", '{"sentence1": "x", "sentence2": "y", "score": true}', r"line 1: score True"),
        ("a.jsonl", '["x", "y", 1]', r"line 1: the names 'x', 'y', '1'"),
        ("a.tsv", HEADER, "no rated pair"),
        ("a.txt", HEADER, "has no columns"),
    ],
)
def test_bad_sts_files(tmp_path, name, content, message):
    with pytest.raises(InputError, match=message):
        read_sts(write(tmp_path / name, content))


def test_real_files_have_the_rows_their_authors_counted():
    dev = read_sts(shared_path("data/sts/stsb-dev.tsv"))
    assert len(dev) == 1500
    assert dev[0] == STSPair("", "A man with a hard hat is dancing.", "A man wearing a hard hat is dancing.", 5.0)
    sts12 = read_sts(shared_path("data/sts/sts12-test.tsv"))
    assert len(sts12) == 3108 and {pair.subset for pair in sts12} >= {"MSRpar", "MSRvid"}
    nli = read_training_file(shared_path("data/nli/nli_triples.tsv"))
    assert (nli.kind, len(nli.rows)) == ("triples", 8816)
    assert nli.rows[0][2] == "The men are fighting outside a deli."
    assert len(read_sentences(shared_path("data/sentences/wikipedia_80k.txt"))) == 80732
