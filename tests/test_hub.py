"""Downloads against a hub on 127.0.0.1: what arrives, what is kept, and one sentence for what goes wrong."""

import gzip
import hashlib
import json
import sys

import pytest
from bert_folder import write_bert, write_modules
from local_hub import COMMIT, Hub, serve

from nano_simcse import SentenceEncoder, downloads
from nano_simcse import hub as client
from nano_simcse.cli import main
from nano_simcse.data.readers import read_sts
from nano_simcse.errors import InputError

pytest.importorskip("huggingface_hub", reason="needs huggingface_hub: pip install -e '.[hub]'")

WIKI = ("A sentence of some length, to be cut in the middle.\n" * 4000).encode()
WIKI_REPO = "datasets/princeton-nlp/datasets-for-simcse"
NAME = "wiki1m_for_simcse.txt"


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub with a model and the paper's corpus in small, whose checksum is the known one here."""
    folder = write_modules(write_bert(tmp_path / "bert"), "Pooling", "Normalize")
    model = {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    hub = Hub({"owner/tiny-bert": model, WIKI_REPO: {NAME: WIKI}}, large={"model.safetensors", NAME})
    server = serve(hub)
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    monkeypatch.setenv("HF_TOKEN", "secret")
    monkeypatch.setenv("NANO_SIMCSE_CACHE", str(tmp_path / "cache"))
    file = downloads.PublicFile(NAME, downloads.AUTHORS, NAME, hashlib.sha256(WIKI).hexdigest())
    monkeypatch.setitem(downloads.SETS, "wiki1m", downloads.PublicSet((file,), "nano-simcse train {files}"))
    hub.stop = lambda: (server.shutdown(), server.server_close())
    yield hub
    hub.stop()


def cached(tmp_path):
    """Names of all files below the cache."""
    return {p.relative_to(tmp_path / "cache").as_posix() for p in (tmp_path / "cache").rglob("*") if p.is_file()}


def test_a_model_is_fetched_once_and_then_read_without_a_connection(hub, tmp_path):
    encoder = SentenceEncoder.load("owner/tiny-bert")
    assert encoder.fingerprint() == SentenceEncoder.load(tmp_path / "bert").fingerprint()
    assert (encoder.max_length, encoder.normalize) == (7, True)
    assert ("model.safetensors", None) in hub.gets() and ("1_Pooling/config.json", None) in hub.gets()
    hub.asked.clear()
    hub.stop()
    assert SentenceEncoder.load("owner/tiny-bert").fingerprint() == encoder.fingerprint()
    assert hub.asked == []


def test_download_takes_a_newer_commit_and_load_does_not(hub, tmp_path):
    old = SentenceEncoder.load("owner/tiny-bert").fingerprint()
    hub.commit = "b" * 40
    files = hub.files["owner/tiny-bert"]
    files["sentence_bert_config.json"] = json.dumps({"max_seq_length": 5}).encode()
    assert SentenceEncoder.load("owner/tiny-bert").fingerprint() == old
    (folder,) = downloads.download("owner/tiny-bert")
    assert folder.name == hub.commit
    assert SentenceEncoder.load("owner/tiny-bert").max_length == 5


def test_a_set_is_checked_copied_and_not_sent_twice(hub, tmp_path, capsys):
    for _ in range(2):
        assert main(["download", "wiki1m", "--to", str(tmp_path / "data")]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines == [str(tmp_path / "data" / NAME), f"use it with: nano-simcse train {tmp_path / 'data' / NAME}"]
        assert (tmp_path / "data" / NAME).read_bytes() == WIKI
    assert hub.gets() == [(NAME, None)]
    assert cached(tmp_path) == {f"hub/dataset/princeton-nlp--datasets-for-simcse/{x}"
                                for x in ("snapshot.json", f"{COMMIT}/{NAME}")}  # fmt: skip


def test_a_cut_transfer_goes_on_where_it_stopped(hub, tmp_path):
    hub.cut, hub.cuts = {NAME: 50_000}, 2
    downloads.download("wiki1m", tmp_path / "data")
    assert (tmp_path / "data" / NAME).read_bytes() == WIKI
    assert hub.gets() == [(NAME, None), (NAME, "bytes=50000-"), (NAME, "bytes=100000-")]


def test_what_arrived_before_giving_up_is_kept_for_the_next_command(hub, tmp_path, capsys):
    hub.cut = {NAME: 10_000}
    assert main(["download", "wiki1m", "--to", str(tmp_path / "data")]) == 2
    message = capsys.readouterr().err
    assert f"stopped after 30,000 of {len(WIKI):,} bytes" in message and "goes on from there" in message
    assert not (tmp_path / "data").exists()
    hub.cut = {}
    hub.asked.clear()
    assert main(["download", "wiki1m", "--to", str(tmp_path / "data")]) == 0
    assert hub.gets() == [(NAME, "bytes=30000-")]
    assert (tmp_path / "data" / NAME).read_bytes() == WIKI


@pytest.mark.parametrize("chunked", [False, True])
def test_a_cut_transfer_of_unknown_size_is_not_taken_for_a_whole_one(hub, tmp_path, monkeypatch, chunked):
    monkeypatch.setattr(client, "BLOCK", 1000)
    hub.large, hub.sizes, hub.chunked, hub.cut = set(), False, chunked, {NAME: 50_000}
    repo = WIKI_REPO.removeprefix("datasets/")
    with pytest.raises(client.Offline, match=f"{NAME} could not be fetched"):
        client.fetch(repo, [NAME], kind="dataset")
    assert [path for path in cached(tmp_path) if not path.endswith(".partial")] == []
    hub.cut = {}
    assert (client.fetch(repo, [NAME], kind="dataset") / NAME).read_bytes() == WIKI
    assert [span for _, span in hub.gets()] == [None, "bytes=50000-", "bytes=100000-", "bytes=150000-"]


def test_a_server_without_ranges_sends_all_again(hub, tmp_path):
    hub.cut, hub.cuts, hub.ranges = {NAME: 50_000}, 1, False
    downloads.download("wiki1m", tmp_path / "data")
    assert hub.gets() == [(NAME, None), (NAME, "bytes=50000-")]
    assert (tmp_path / "data" / NAME).read_bytes() == WIKI


def test_the_rest_of_another_version_is_not_appended(hub, tmp_path):
    hub.cut = {NAME: 10_000}
    with pytest.raises(InputError, match="stopped after"):
        downloads.download("wiki1m", tmp_path / "data")
    hub.cut, other = {}, b"Other text.\n" * 9000
    hub.files[WIKI_REPO][NAME] = other
    with pytest.raises(InputError, match=f"arrived with SHA-256 {hashlib.sha256(other).hexdigest()}; expected"):
        downloads.download("wiki1m", tmp_path / "data")


def test_a_wrong_checksum_is_refused_and_thrown_away(hub, tmp_path, capsys):
    hub.files[WIKI_REPO][NAME] = b"x" + WIKI[1:]
    assert main(["download", "wiki1m", "--to", str(tmp_path / "data")]) == 2
    message = capsys.readouterr().err
    assert f"expected {hashlib.sha256(WIKI).hexdigest()}, so it was thrown away" in message
    assert not (tmp_path / "data").exists() and cached(tmp_path) == set()
    hub.files[WIKI_REPO][NAME] = WIKI
    assert main(["download", "wiki1m", "--to", str(tmp_path / "data")]) == 0


def test_a_file_in_the_cache_that_was_altered_is_fetched_again(hub, tmp_path):
    downloads.download("wiki1m", tmp_path / "data")
    (file,) = (tmp_path / "cache").rglob(NAME)
    file.write_bytes(b"x" + WIKI[1:])
    downloads.download("wiki1m", tmp_path / "data")
    assert file.read_bytes() == WIKI == (tmp_path / "data" / NAME).read_bytes()


def test_the_checksum_a_hub_announces_for_a_large_file_is_held_to(hub):
    hub.announced = {"model.safetensors": "0" * 64}
    with pytest.raises(InputError, match=r"model\.safetensors arrived with SHA-256 .* expected 0000"):
        SentenceEncoder.load("owner/tiny-bert")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("owner/no-such-model", "has no model 'owner/no-such-model' that is open to you"),
        ("wiki", "'wiki' is not one of stsb, sts, sickr, wiki1m, nli, and no hub id"),
        ("a/b/c", "no hub id of a model like owner/name"),
    ],
)
def test_what_the_hub_does_not_have(hub, capsys, name, words):
    with pytest.raises(InputError, match=words):
        downloads.download(name)


def test_a_missing_file_is_named(hub):
    del hub.files["owner/tiny-bert"]["model.safetensors"]
    with pytest.raises(InputError, match=r"model 'owner/tiny-bert' at http.* has no file 'model\.safetensors'"):
        SentenceEncoder.load("owner/tiny-bert")


def test_offline_is_one_sentence_and_the_cache_goes_on_serving(hub, tmp_path, capsys):
    downloads.download("wiki1m", tmp_path / "data")
    hub.stop()
    assert main(["download", "nli", "--to", str(tmp_path / "data")]) == 2
    message = capsys.readouterr().err
    assert message.startswith(f"nano-simcse: {hub.url} cannot be reached for princeton-nlp/datasets-for-simcse/nli_for")
    assert message.count("\n") == 1
    with pytest.warns(UserWarning, match="cannot be reached .* the files in the cache are used"):
        (path,) = downloads.download("wiki1m", tmp_path / "again")
    assert path.read_bytes() == WIKI


def test_a_failing_hub_and_a_server_that_is_none(hub, tmp_path):
    hub.status = 500
    with pytest.raises(client.Offline, match=r"cannot be reached for .*500"):
        downloads.download("wiki1m", tmp_path)
    hub.status, hub.hub_headers, hub.large = None, False, set()
    with pytest.raises(InputError, match=r"does not answer like a hub: .* has no X-Repo-Commit header"):
        downloads.download("wiki1m", tmp_path)


def test_rated_pairs_are_counted(hub, tmp_path, capsys):
    def rows(count):
        line = json.dumps({"sentence1": "a cat", "sentence2": "a dog", "score": 2.5}) + "\n"
        return gzip.compress((line * count).encode())

    for split, count in (("train", 5749), ("validation", 1500), ("test", 1379)):
        hub.files.setdefault("datasets/mteb/stsbenchmark-sts", {})[f"{split}.jsonl.gz"] = rows(count)
    assert main(["download", "stsb", "--to", str(tmp_path / "data")]) == 0
    assert capsys.readouterr().out.splitlines()[:3] == [
        str(tmp_path / "data" / f"stsb-{split}.jsonl.gz") for split in ("train", "dev", "test")
    ]
    assert len(read_sts(tmp_path / "data" / "stsb-dev.jsonl.gz")) == 1500
    hub.files["datasets/mteb/sickr-sts"] = {"test.jsonl.gz": rows(12)}
    with pytest.raises(InputError, match=r"mteb/sickr-sts/test\.jsonl\.gz has 12 pairs; expected 9927"):
        downloads.download("sickr", tmp_path / "data")


def test_a_folder_outside_the_model_is_refused(hub):
    modules = [{"path": "../../elsewhere", "type": "x.Pooling"}]
    hub.files["owner/tiny-bert"]["modules.json"] = json.dumps(modules).encode()
    with pytest.raises(InputError, match=r"names the folder '\.\./\.\./elsewhere'; expected the name of a folder"):
        SentenceEncoder.load("owner/tiny-bert")


def test_without_the_library_the_sentence_says_what_to_install(hub, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert main(["info", "owner/tiny-bert"]) == 2
    assert "expected: pip install 'nano_simcse[hub]'" in capsys.readouterr().err
    assert hub.asked == []


def test_the_sets_of_the_paper_have_the_names_and_checksums_their_authors_publish():
    files = {file.name: file for entry in downloads.SETS.values() for file in entry.files}
    assert list(downloads.SETS) == ["stsb", "sts", "sickr", "wiki1m", "nli"]
    assert len(files) == 11
    assert files["nli_for_simcse.csv"].sha256 == "0747687ec3594fa449d2004fd3757a56c24bf5f7428976fb5b67176775a68d48"
    assert files[NAME].sha256 == "7b1825863a99aa76479b0456f7c210539dfaeeb69598b41fb4de4f524dd5a706"
    assert all(file.sha256 or file.pairs for file in files.values())
