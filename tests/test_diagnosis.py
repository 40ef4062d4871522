"""Clouds of known shape and the sentences said of them; the command from a file to words and a picture."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from command_line import untrained_model
from tiny import pairs, sentences

from nano_simcse import SentenceEncoder
from nano_simcse.cli import main
from nano_simcse.diagnosis import measures
from nano_simcse.diagnosis.measures import Text, cloud_report, read_text
from nano_simcse.diagnosis.picture import pair_cosines
from nano_simcse.diagnosis.readings import take_readings
from nano_simcse.diagnosis.words import changes, dominating, findings, pair_share
from nano_simcse.errors import InputError
from nano_simcse.geometry import coordinate_shares, entropy_rank, even_uniformity, uniformity, variance_shares
from nano_simcse.transforms import fit_transform

N, D = 400, 32


def isotropic(seed=0, n=N):
    return np.random.default_rng(seed).standard_normal((n, D))


def along(direction, length, x=None):
    """Rows of an even cloud, each with the same vector of that length added."""
    return (isotropic() if x is None else x) + length * direction / np.linalg.norm(direction)


def report(x, positives=None):
    """CloudReport of x, with rows 0, 2, 4, ... paired with the next where `positives` is set."""
    none = np.zeros(0, int)
    left, right = (np.arange(0, len(x), 2), np.arange(1, len(x), 2)) if positives else (none, none)
    return cloud_report(x, Text([str(i) for i in range(len(x))], left, right))


def said(x):
    """{name: sentence} of the findings."""
    return {finding.name: finding.text for finding in findings(report(x))}


def wrong(x):
    return {finding.name for finding in findings(report(x)) if finding.wrong}


# --- measures


def test_shares_by_hand():
    x = np.array([[3.0, 4, 0], [4, 3, 0], [-3, 4, 0], [-4, 3, 0]])
    np.testing.assert_allclose(coordinate_shares(x), [0.5, 0.5, 0], atol=1e-15)
    np.testing.assert_allclose(variance_shares(np.diag([5.0, 5, 5])), [1 / 3] * 3, atol=1e-15)
    # centred, the second coordinate varies by 0.1 about its mean 0.7 and the first by 0.6, 0.8
    np.testing.assert_allclose(variance_shares(x, centre=True), np.array([0.5, 0.01, 0]) / 0.51, atol=1e-15)
    np.testing.assert_array_equal(variance_shares(np.ones((4, 3)), centre=True), 0)
    assert entropy_rank(np.array([0.25] * 4 + [0])) == pytest.approx(4, abs=1e-14)
    assert entropy_rank(np.zeros(3)) == 0


@pytest.mark.parametrize("width", [2, 16, 384])
def test_even_uniformity_is_that_of_an_even_cloud(width):
    x = np.random.default_rng(0).standard_normal((1500, width))
    assert even_uniformity(width) == pytest.approx(uniformity(x), abs=3e-3)


def test_a_report_holds_the_coordinates_and_how_constant_they_are():
    x = np.zeros((N, D))
    x[:, 7], x[:, 3] = 3, np.where(np.arange(N) % 2, 4, -4)  # one number in every row; one that changes sign
    first, second, *rest = report(x).coordinates
    assert (first.index, second.index, rest) == (3, 7, [])
    assert (first.share, second.share) == pytest.approx((0.64, 0.36), abs=1e-12)
    assert (first.constant, second.constant) == pytest.approx((0, 1), abs=1e-12)


# --- words


def test_an_even_cloud_has_nothing_wrong():
    assert wrong(isotropic()) == set()
    words = said(isotropic())
    assert words["cone"] == "Well spread: two random sentences have cosine 0.00 on average."
    assert words["sound"] == "Nothing stands out: no cone, no dominating coordinate or direction."
    assert words["rank"] == "The rows use about 31 of 32 directions (effective rank), and about 31 around their mean."
    assert words["uniformity"] == "Uniformity is -3.75; rows spread evenly over this sphere have -3.75."


def test_a_narrow_cone_is_one_and_its_offset_is_to_blame():
    x = along(np.ones(D), 11)
    words = said(x)
    assert words["cone"].startswith("Narrow cone: two random sentences have cosine 0.80 on average, so absolute")
    assert words["cone"].endswith("is 0.89 long: 80 % of their squared length is one vector that all share.")
    assert words["rank"].endswith("around their mean: what is narrow is the offset, and centring takes that away.")
    assert wrong(x) == {"cone", "rank", "uniformity"}
    assert wrong(x - x.mean(axis=0)) == set()


def test_a_wide_cone():
    words = said(along(np.ones(D), 4))
    assert words["cone"].startswith("A wide cone: two random sentences have cosine 0.34 on average. The mean of")


def test_one_coordinate_that_dominates_is_named():
    axis = np.eye(D)[9]
    words = said(along(axis, 11))
    assert words["coordinate"] == (
        "Coordinate 9 alone holds 80 % of the squared length (an even share of 32 is 3.1 %), with much the same value "
        "in every row: it raises every cosine and tells no texts apart."
    )
    stretched = isotropic() * (1 + 9 * axis)  # large, but of either sign: no cone
    assert said(stretched)["coordinate"] == (
        "Coordinate 9 alone holds 56 % of the squared length (an even share of 32 is 3.1 %)."
    )
    assert wrong(stretched) == {"coordinate", "direction", "uniformity"}
    assert said(stretched)["direction"] == "One direction carries 56 % of the variance around the mean."
    both = isotropic() * (1 + 9 * np.eye(D)[[4, 20]].sum(axis=0))
    assert re.match(r"Coordinates (4, 20|20, 4) alone hold 7\d % of the squared length \(an", said(both)["coordinate"])
    assert dominating(report(isotropic())) == []


def test_a_leading_direction_that_is_no_coordinate():
    direction = np.ones(D) / np.sqrt(D)
    x = isotropic() + 5 * np.random.default_rng(1).standard_normal((N, 1)) * direction
    assert wrong(x) >= {"direction"} and "coordinate" not in said(x)
    assert re.fullmatch(r"One direction carries 28 % of the variance around the mean\.", said(x)["direction"])


def test_a_collapsed_cloud_is_told_alone():
    point = 1 + 1e-5 * isotropic()
    found = findings(report(point))
    assert [finding.name for finding in found] == ["collapse"] and found[0].wrong
    assert found[0].text.startswith("Collapsed: all rows lie within one point: their variance is ")
    assert found[0].text.endswith(". Such embeddings cannot tell texts apart.")
    antipodal = np.where(np.arange(N) % 2, 1, -1)[:, None] * (1 + 1e-3 * isotropic())
    assert "vary in about 1.0 directions only" in findings(report(antipodal))[0].text


def test_few_directions_are_not_blamed_on_the_offset():
    wide = np.random.default_rng(0).standard_normal((N, 64)) * np.r_[np.ones(4), np.full(60, 0.02)] + 0
    text = {f.name: f for f in findings(report(wide))}["rank"]
    assert text.wrong and text.text.endswith("around their mean: the variation itself is confined to few directions.")


def test_positive_pairs_and_duplicates():
    x = isotropic()
    x[1::2] = x[::2] + 0.5 * x[1::2]
    r = report(x, positives=True)
    words = {finding.name: finding.text for finding in findings(r)}
    assert pair_share(r) == pytest.approx(r.alignment / (2 - 2 * r.mean_pair_cosine))
    assert words["alignment"] == "Positive pairs lie at 10 % of the squared distance of random pairs (lower is better)."
    assert "duplicates" not in words
    x[1] = 3 * x[0]
    assert "near-duplicates" in said(x)["duplicates"]


def changed(before, after, **scores):
    a, b = report(before, True), report(after, True)
    if scores:
        a, b = replace(a, sts=scores["a"]), replace(b, sts=scores["b"])
    return {f.name: f for f in changes(a, b, scores.get("repairs", ()))}


def test_what_training_changed_is_told_from_the_numbers():
    x = isotropic()
    x[1::2] = x[::2] + 0.5 * x[1::2]
    cone = along(np.eye(D)[9], 11, x)
    found = changed(cone, x)
    assert found["cone"].text == "Training opened the cone: the mean cosine went from 0.77 to 0.00."
    assert found["uniformity"].text.startswith("Rows are spread more evenly: uniformity went from -0.")
    assert found["rank"].text.startswith("They use more directions: the effective rank went from 4 to 30.")
    assert found["coordinate"].text == "Coordinate 9 no longer dominates."
    assert not any(finding.wrong for finding in found.values())
    back = changed(x, cone)
    assert back["cone"].text.startswith("Training narrowed the cone") and back["cone"].wrong
    assert back["coordinate"].text == "Coordinate 9 holds 77 % of the squared length, and did not dominate before."
    assert back["rank"].text.startswith("They use fewer directions") and back["rank"].wrong
    less = changed(cone, along(np.eye(D)[9], 6, x))
    assert re.fullmatch(r"Coordinate 9 holds [45]\d % of the squared length, 77 % before\.", less["coordinate"].text)
    assert not less["coordinate"].wrong


def test_pairs_that_lose_each_other_are_told():
    x = isotropic()
    near, far = x.copy(), x.copy()
    near[1::2] = x[::2] + 0.3 * x[1::2]
    far[1::2] = x[::2] + 1.5 * x[1::2]
    found = changed(near, far)["alignment"]
    assert found.wrong and found.text.startswith("Beside random pairs, positive ones lie farther: alignment went from ")
    assert changed(far, near)["alignment"].text.startswith("Beside random pairs, positive ones lie closer")
    same = changed(near, near)
    assert set(same) == {"alignment"} and "lie as they did beside random ones" in same["alignment"].text
    a = report(near)
    assert [f.text for f in changes(a, a)] == ["No measure changed by more than its threshold."]


def test_the_gain_in_sts_is_compared_with_what_needs_no_training():
    x, r = isotropic(), report(isotropic())
    repairs = [("centred", replace(r, sts=80.0)), ("whitened", replace(r, sts=82.5))]
    found = changed(x, x, a=79.5, b=85.0, repairs=repairs)["sts"]
    assert found.text == (
        "STS rose by 5.5, from 79.5 to 85.0. Without training, whitened embeddings reach 82.5: 2.5 above that."
    )
    found = changed(x, x, a=79.5, b=75.0, repairs=repairs)["sts"]
    assert found.wrong and found.text.startswith("STS fell by 4.5, from 79.5 to 75.0.")
    assert found.text.endswith("whitened embeddings reach 82.5: 7.5 below that.")
    assert changed(x, x, a=79.5, b=79.6)["sts"].text == "STS did not change: 79.5 and 79.6."


def test_a_collapse_is_all_that_is_said_of_training():
    x, point = isotropic(), 1 + 1e-5 * isotropic()
    for before, after, words in (
        (x, point, "Training collapsed the rows: all rows lie within one point"),
        (point, point, "Training left the rows collapsed: all rows"),
        (point, x, "Training undid the collapse."),
    ):
        (found,) = changes(report(before), report(after))
        assert found.text.startswith(words) and found.wrong == (after is point)


# --- readings of a text


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return untrained_model(tmp_path_factory.mktemp("diagnosis") / "model")


@pytest.fixture(scope="module")
def rated(tmp_path_factory):
    """An STS file: 30 paraphrases scored 5 or 4 in turn, and 30 unrelated pairs scored by their shared words."""
    rows = [(a, b, 5 - i % 2) for i, (a, b) in enumerate(pairs(30))]
    rows += [(a, b, round(len(set(a.split()) & set(b.split())) / 4, 2))
             for (a, _), (b, _) in zip(pairs(90)[30:60], pairs(90)[60:], strict=True)]  # fmt: skip
    path = tmp_path_factory.mktemp("sts") / "dev.tsv"
    lines = ["sentence1\tsentence2\tscore", *("\t".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_the_readings_are_the_transforms_of_the_raw_one(model, rated):
    encoder = SentenceEncoder.load(model).with_reading(normalize=True)
    text = read_text(rated)
    fitted_on = sentences(200)
    readings = take_readings(encoder, text, "avg_top2", to_fit=fitted_on, ranks=(4,))
    bare = encoder.with_reading("avg_top2", normalize=False)
    raw, rows = bare.encode(text.sentences), bare.encode(fitted_on)
    expected = {
        "raw": raw,
        "centred": fit_transform(rows, "centre")(raw),
        "whitened": fit_transform(rows)(raw),
        "whitened 4": fit_transform(rows, rank=4)(raw),
    }
    assert list(readings.clouds) == list(readings.reports) == list(expected)
    for name, x in expected.items():
        np.testing.assert_array_equal(readings.clouds[name], x)
        assert readings.reports[name].uniformity == pytest.approx(uniformity(x), abs=1e-12)
    assert [name for name, _ in readings.untrained] == ["centred", "whitened", "whitened 4"]
    assert readings.notes == []
    few = take_readings(encoder, text, "avg_top2", to_fit=fitted_on[:70])
    assert few.notes[0].startswith("Whitening is fitted to 70 sentences, fewer than 5 for each of 16 coordinates")


def test_a_model_with_a_transform_has_a_reading_as_saved(model, rated):
    encoder = SentenceEncoder.load(model)
    whitened = encoder.with_transform(fit_transform(encoder.encode(sentences(200)), rank=5))
    text = read_text(rated)
    readings = take_readings(whitened, text, against=encoder.with_reading("cls"))
    assert list(readings.clouds) == ["raw", "centred", "whitened", "as saved", "trained"]
    np.testing.assert_array_equal(readings.clouds["as saved"], whitened.encode(text.sentences))
    np.testing.assert_array_equal(readings.clouds["trained"], encoder.with_reading("cls").encode(text.sentences))
    assert "as saved" not in take_readings(whitened, text, "avg_top2").clouds  # it belongs to the other pooling


def test_a_collapsed_model_is_not_repaired(model, rated):
    encoder = SentenceEncoder.load(model)
    params = encoder.params.astype(np.float32)
    params["layers.0.feed_forward.norm.gamma"][...] = 0  # every token is the bias
    params["layers.0.feed_forward.norm.beta"][...] = 1
    readings = take_readings(encoder.with_parameters(params), read_text(rated))
    assert list(readings.clouds) == ["raw"] and "left out" in readings.notes[0]
    assert findings(readings.reports["raw"])[0].name == "collapse"


def test_positives_of_rated_pairs_are_those_scored_above_4(model, rated, tmp_path):
    text = read_text(rated)
    assert len(text.rated) == 60 and len(text.left) == 15  # the other 15 are scored 4
    assert [text.sentences[i] for i in text.left] == [pairs(30)[i][0] for i in range(0, 30, 2)]
    assert [text.sentences[i] for i in text.right] == [pairs(30)[i][1] for i in range(0, 30, 2)]
    (tmp_path / "low.tsv").write_text("sentence1\tsentence2\tscore\na\tb\t0.1\nc\td\t1\n", encoding="utf-8")
    low = read_text(tmp_path / "low.tsv")
    assert len(low.left) == 0 and cloud_report(isotropic(n=4), low).alignment is None


def test_of_a_long_text_a_sample_is_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(measures, "MOST", 50)
    (tmp_path / "t.txt").write_text("\n".join(sentences(200)), encoding="utf-8")
    text = read_text(tmp_path / "t.txt")
    assert len(set(text.sentences)) == 50 and text.total == 200 and set(text.sentences) < set(sentences(200))
    assert text.sentences == read_text(tmp_path / "t.txt").sentences
    (tmp_path / "p.tsv").write_text("\n".join("\t".join(p) for p in pairs(60)), encoding="utf-8")
    text = read_text(tmp_path / "p.tsv")
    assert len(text.left) == 25 and len(text.sentences) == 50 and text.total == 120
    for left, right in zip(text.left, text.right, strict=True):
        assert (text.sentences[left], text.sentences[right]) in pairs(60)


# --- the command


def diagnose(capsys, *arguments, code=0):
    """Standard output and error, lines of them, of `diagnose`."""
    assert main(["diagnose", *map(str, arguments)]) == code
    return [stream.splitlines() for stream in capsys.readouterr()]


def test_the_command_says_and_draws_it(model, rated, tmp_path, capsys):
    (tmp_path / "t.txt").write_text("\n".join(sentences(200)), encoding="utf-8")
    options = ["--model", model, "--pooling", "avg_top2", "--against", model]
    options += ["--fit", tmp_path / "t.txt", "--ranks", "4", "--picture", tmp_path / "d.png"]
    output, _ = diagnose(capsys, rated, *options, "--json")
    report = json.loads(output[-1])
    assert output[0].endswith("rated pairs, 15 of them positive (scored above 4)")
    assert output[1].split() == "STS alignment uniformity mean cosine effective rank".split()
    table = {line[:12].strip(): line for line in output[2:7]}
    assert list(table) == ["raw", "centred", "whitened", "whitened 4", "trained"] == list(report["readings"])
    assert table["raw"].split()[1] == f"{report['readings']['raw']['sts']:.1f}" == f"{report['sts']:.1f}"
    assert table["whitened"].split()[-1] == f"{report['readings']['whitened']['effective_rank']:.1f}"
    raw = output.index("raw (avg_top2)")
    assert " ".join(line.strip() for line in output[raw + 1 : output.index("", raw)]) == report["verdict"]
    assert f"raw (avg_top2) -> trained ({model}, mean)" in output and report["changes"]
    assert (tmp_path / "d.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    first = (tmp_path / "d.png").read_bytes()
    diagnose(capsys, rated, *options)
    assert (tmp_path / "d.png").read_bytes() == first


def test_the_command_draws_what_has_no_pairs(model, tmp_path, capsys):
    (tmp_path / "t.txt").write_text("\n".join(sentences(100)), encoding="utf-8")
    output, _ = diagnose(capsys, tmp_path / "t.txt", "--model", model, "--picture", tmp_path / "d.png")
    assert output[0] == "100 distinct sentences"
    assert output[1].split() == "uniformity mean cosine effective rank".split()
    assert (tmp_path / "d.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--picture", "d.svg"], "--picture is 'd.svg'; expected a name that ends in .png"),
        (["--ranks", "4;5"], "--ranks is '4;5'; expected whole numbers with commas between them"),
        (["--ranks", "4,17"], "rank is 17; expected 1 to 16 for 120 embeddings of width 16"),
        (["--ranks", "0"], "rank is 0; expected 1 to 16"),
        (["--fit", "nowhere.txt"], "nowhere.txt does not exist"),
        (["--picture", f"{__file__}/d.png"], "d.png' cannot be written (File exists); give another place"),
        (["--against", "nowhere"], "'nowhere' does not exist"),
    ],
)
def test_the_command_refuses_before_it_encodes(model, rated, capsys, monkeypatch, options, words):
    monkeypatch.setattr(SentenceEncoder, "encode", lambda *a, **k: pytest.fail("encoded"))
    output, error = diagnose(capsys, rated, "--model", model, *options, code=2)
    assert output == [] and len(error) == 1 and words in error[0]


def test_cosines_of_random_pairs_leave_out_a_row_with_itself():
    x = np.eye(4)
    np.testing.assert_array_equal(pair_cosines(x), np.zeros(6))
    assert len(pair_cosines(isotropic(), most=10)) == 45
    with pytest.raises(InputError, match="row 0 is the zero vector"):
        pair_cosines(0 * x)
