"""What the chapters are written with: claims, records, cells, manifest. chapters/test_command.py has the commands."""

import numpy as np
import pytest
from lesson import (
    cells,
    check,
    check_close,
    check_true,
    errata_page,
    erratum,
    erratum_claim,
    erratum_quoted,
    figure_files,
    numeric_gradient,
    quoted,
    runner,
)
from lesson.claims import ClaimError, parse
from lesson.records import CheckFailed, recording


@pytest.mark.parametrize(
    "value, claim",
    [
        (0.885367574, "0.8854"),
        (0.885367574, "0.885"),
        (-3.57770876, "-3.5777"),
        (9.4532171e-8, "9.453e-8"),
        (64, "64"),
        (64.0, "64"),
        (64.3, "64."),
        (737280, "737,280"),
        (0.375, "37.5%"),
        (-0.0, "0"),
        (np.float32(0.5), "0.5"),
        (np.array([1.0, 2.0, 3.0]), "1 2.0 3"),
        (np.array([[1, 2], [3, 4]]), "1 2; 3 4"),
        (np.array([[1, 2], [3, 4]]), ["1 2", "3 4"]),
    ],
)
def test_check_accepts_what_rounds_to_the_claim(value, claim):
    assert check(value, claim, "a number") is value


@pytest.mark.parametrize(
    "value, claim",
    [
        (0.885367574, "0.8853"),
        (0.885367574, "0.88536"),
        (9.4532171e-8, "9.454e-8"),
        (64.01, "64"),
        (0.4, "0"),
        (64.6, "64."),
        (float("nan"), "0.5"),
        (float("inf"), "0.5"),
        (np.array([0.5]), "0.5"),
        (np.array([[1.0, 2.0]]), "1 2"),
        (np.array([1.0, 2.1]), "1 2.0"),
        (True, "1"),
        (None, "1"),
        ("1", "1"),
        (1 + 0j, "1"),
        (np.array([]), "1"),
    ],
)
def test_check_rejects_the_rest(value, claim):
    with pytest.raises(CheckFailed):
        check(value, claim, "a number")


@pytest.mark.parametrize("claim", ["", "abc", "0.5 x", "1 2; 3", "1e", "."])
def test_a_claim_that_is_no_number_is_a_mistake_of_the_chapter(claim):
    with pytest.raises(ClaimError):
        parse(claim)


def test_check_close_scales_by_the_largest_entry():
    a = np.array([0.0, 1.0])
    check_close(a, a + np.array([1e-9, 0.0]), 1e-8, "a zero beside a one")
    for other in (a + np.array([1e-7, 0.0]), a[:1], np.array([np.nan, 1.0])):
        with pytest.raises(CheckFailed):
            check_close(a, other, 1e-8, "too far")


def test_check_true_wants_one_boolean():
    assert check_true(np.bool_(True), "true") is True
    with pytest.raises(CheckFailed):
        check_true(False, "false")
    for value in (np.array([True, True]), 1, "yes"):
        with pytest.raises(TypeError):
            check_true(value, "no boolean")


def test_erratum_needs_the_right_value_and_the_wrong_one_to_differ():
    page = {"id": "a", "where": "ch. 1", "says": "something", "why": "Because."}
    assert erratum(0.63, right="0.63", lesson="40", **page) == 0.63
    assert erratum(0.885367574, right="0.8854", lesson="0.8853", **page)
    assert erratum(0.0046, right="0.0046", lesson="0", **page)
    for got, right, lesson in ((0.64, "0.63", "40"), (0.63, "0.63", "0.630"), (581.85, "581.85", "582"), (2, "2", "2")):
        with pytest.raises(CheckFailed):
            erratum(got, right=right, lesson=lesson, **page)
    with pytest.raises(CheckFailed):
        erratum_claim(False, right="b", **page)
    with pytest.raises(CheckFailed):
        erratum_quoted(right="80.7", lesson="80.7", source="Table 2", **page)
    assert erratum_quoted(right="80.7", lesson="80.1", source="Table 2", **page) == 80.7
    assert erratum_quoted(right="five genres", lesson="ten genres", source="MNLI", **page) == "five genres"


def test_a_recording_goes_on_after_a_failure_and_keeps_labels_apart(capsys):
    with recording("ch90_x") as recorder:
        check(1.0, "2", "row 1")
        check(2.0, "2", "row 1")
        quoted("82.5", "a reported score", source="Table 3")
    assert [(r.label, r.passed, r.kind) for r in recorder.records] == [
        ("row 1", False, "check"),
        ("row 1 (2)", True, "check"),
        ("a reported score", True, "quoted"),
    ]
    assert "FAIL" in capsys.readouterr().out


def test_numeric_gradient_of_a_cubic():
    x = np.array([[1.0, -2.0], [0.5, 3.0]])
    before = x.copy()
    assert np.allclose(numeric_gradient(lambda a: (a**3).sum(), x), 3 * x**2, rtol=1e-8)
    assert (x == before).all()
    with pytest.raises(TypeError):
        numeric_gradient(lambda a: a.sum(), x.astype(np.float32))


def test_cells_keep_line_numbers_and_see_changes_in_place(tmp_path):
    path = tmp_path / "ch90_x.py"
    text = '"""Chapter 90: x."""\n\n# %% [markdown]\n# words\n# %% one\na = 1\n\n# %% two\nb = 1 / 0\n'
    path.write_text(text, encoding="utf-8")
    found = cells.split(path)
    assert [(c.title, c.line, c.is_prose) for c in found] == [
        ("", 1, True),
        ("", 3, True),
        ("one", 5, False),
        ("two", 8, False),
    ]
    with pytest.raises(ZeroDivisionError) as caught:
        exec(found[3].code, {})
    assert caught.traceback[-1].lineno + 1 == 9
    namespace = {"a": np.zeros(3), "b": [1], "c": 2}
    before = cells.snapshot(namespace)
    namespace["a"][1] = 5
    namespace["b"].append(2)
    assert [name for name, _ in cells.changed(before, namespace)] == ["a", "b"]


def test_a_small_value_beside_a_large_one_is_shown():
    assert cells.describe("e", np.array([1.0, 2.061e-9, -0.0])) == "e  3 float64  [        1 2.061e-09         0]"


def test_chapters_are_found_by_number_prefix_and_word():
    for name in ("7", "07", "ch7", "ch07", "toy_by_hand", "ch07_toy_by_hand", "chapters/ch07_toy_by_hand.py"):
        assert [path.stem for path in runner.find([name])] == ["ch07_toy_by_hand"]
    with pytest.raises(runner.UnknownChapter, match="did you mean ch07_toy_by_hand"):
        runner.find(["toy_by_hands"])


def test_figure_manifest_tells_changed_data_from_rounding():
    x = np.linspace(0.0, 1.0, 500)
    entry = figure_files.summary({"x": x, "names": np.array(["a", "b"])})
    assert figure_files.differences(entry, {"x": x * (1 + 1e-9), "names": np.array(["a", "b"])}) == []
    assert figure_files.differences(entry, {"x": x + 1e-3, "names": np.array(["a", "c"])}) == ["names", "x"]
    assert figure_files.differences(entry, {"x": x[:-1]}) == ["names", "x"]
    assert figure_files.differences(entry, {"x": x[::-1], "names": np.array(["a", "b"])}) == ["x"]


def test_errata_page_groups_calls_of_one_mistake(capsys):
    with recording("ch90_x") as recorder:
        place = {"where": "ch. 90, start", "says": "it is 2.5 | not"}
        erratum(1.5, right="1.5", lesson="2.5", id="a", why="Sum.", label="p", **place)
        erratum(3.5, right="3.5", lesson="4.5", id="a", why="Sum.", label="q")
        erratum_quoted(right="80.7", lesson="80.1", source="Table 2", id="b", says="80.1", why="A slip.")
        erratum_claim(True, right="some do", id="c", says="all do", why="One does not.")
    result = runner.Result("ch90_x", records=recorder.records)
    lines = errata_page.render([result]).splitlines()[-3:]
    assert lines == [
        "| lesson 0, ch. 90, start | it is 2.5 \\| not | p: 1.5; q: 3.5. Sum. | `ch90_x: p`; `ch90_x: q` |",
        "| lesson 0, ch. 90 | 80.1 | 80.7. A slip. Source: Table 2. | `ch90_x: 80.1` |",
        "| lesson 0, ch. 90 | all do | some do. One does not. | `ch90_x: refuted: all do` |",
    ]
    assert result.errata == {"a", "b", "c"}
