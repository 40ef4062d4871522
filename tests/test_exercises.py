"""The exercises: every stub fails, every solution passes, every planted mistake gets its own hint."""

import ast
import shutil
import subprocess

import numpy as np
import pytest
from exercise_mistakes import MISTAKES

from chapters.exercises import answer_keys, catalogue, command, grading

ALL = catalogue.exercises()
SOLUTIONS = catalogue.FOLDER / "solutions"
EXPERIMENTS = ("dropout_off", "mean_pooling", "data_or_epochs")
FIVE = ("infonce_grad", "nce_mi_estimate", "hard_negative_loss", "clip_loss_grad", "alignment_uniformity")


def graded(name, folder):
    return grading.grade(catalogue.find(name), answer_keys.KEYS[name], folder)


def written(tmp_path, name, text):
    """A folder with the reader's file of that exercise."""
    (tmp_path / catalogue.find(name).file_name).write_text(text, encoding="utf-8")
    return tmp_path


def solution(name):
    return (SOLUTIONS / catalogue.find(name).file_name).read_text(encoding="utf-8")


def worked_on(path):
    """Whether a reader has edited the committed stub, which is what it is for."""
    try:
        done = subprocess.run(["git", "status", "--porcelain", "--", path.name], cwd=path.parent, capture_output=True)
    except OSError:
        return False
    return done.stdout.startswith((b" M", b"M"))


# ---- stubs and solutions ------------------------------------------------------------------------------------------


def test_the_exercises_are_numbered_complete_and_have_keys():
    assert [one.number for one in ALL] == list(range(1, len(ALL) + 1))
    assert {one.name for one in ALL} == set(answer_keys.KEYS) == set(MISTAKES)
    assert {*FIVE, *EXPERIMENTS} <= {one.name for one in ALL}
    own = [one for one in ALL if one.name not in {*FIVE, *EXPERIMENTS} and one.chapter <= 9]
    assert len(own) >= 6
    assert [one.chapter for one in ALL] == sorted(one.chapter for one in ALL)
    assert {path.name for path in catalogue.FOLDER.glob("ex*.py")} == {one.file_name for one in ALL}


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.name)
def test_a_stub_is_not_started_and_asks_for_what_the_solution_is(one):
    path = catalogue.FOLDER / one.file_name
    if worked_on(path):
        pytest.skip("this exercise is being worked on")
    assert graded(one.name, catalogue.FOLDER).status == "not started"
    stub, answer = (ast.parse(text) for text in (path.read_text(encoding="utf-8"), solution(one.name)))
    assert ast.get_docstring(stub).splitlines()[0] == ast.get_docstring(answer).splitlines()[0]
    functions = [{n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)} for tree in (stub, answer)]
    assert ast.dump(functions[0][one.name].args) == ast.dump(functions[1][one.name].args)


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.name)
def test_a_solution_is_solved(one):
    assert graded(one.name, SOLUTIONS) == grading.Grade("solved")


# ---- hints --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", answer_keys.KEYS)
def test_every_wrong_variant_of_a_key_gets_its_own_hint(name):
    key = answer_keys.KEYS[name]
    assert len({slip.hint for slip in key.slips}) == len(key.slips)
    for slip in key.slips:
        found = grading.grade_function(slip.function, key)
        assert found.status == "failing"
        assert any(hint.endswith(": " + slip.hint) for hint in found.hints), (slip.hint, found.hints)


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_typed_into_the_solution_gets_its_own_hint(name, tmp_path):
    text = solution(name)
    for old, new, words in MISTAKES[name]:
        assert text.count(old) == 1, (name, old)
        found = graded(name, written(tmp_path, name, text.replace(old, new)))
        assert found.status == "failing"
        assert any(words in hint for hint in found.hints), (old, new, found.hints)


def test_hints_name_the_outputs_and_what_is_right_already(tmp_path):
    text = solution("infonce_grad").replace("du = ds @ w / tau", "du = -ds @ w")
    found = graded("infonce_grad", written(tmp_path, "infonce_grad", text))
    assert found.hints == [
        "dQ: the sign is the opposite one and the factor 1/tau is missing.",
        "right already: loss, dP",
    ]


def test_two_mistakes_at_once_are_both_named(tmp_path):
    text = solution("infonce_grad").replace("dw = ds.T @ u / tau", "dw = -ds @ u / tau")
    found = graded("infonce_grad", written(tmp_path, "infonce_grad", text))
    assert found.hints[0].startswith("dP: dL/dlogits has rows for queries;")
    assert found.hints[0].endswith("And then the sign is the opposite one.")


@pytest.mark.parametrize(
    "value, words",
    [
        ("None", "returns nothing"),
        ("'yes'", "rank should be numbers."),
        ("[[1, 2], [3]]", "real numbers are asked for"),
        ("True", "of type bool"),
        ("1j", "of type complex128"),
        ("float('nan')", "not finite in the case '8 rows of 4'"),
        ("0.0", "wrong in every case"),
        ("X", "wrong shape: (8, 4) came back, () is asked for."),
    ],
)
def test_values_of_the_wrong_form_are_told(value, words, tmp_path):
    text = f"def effective_rank(X):\n    return {value}\n"
    found = graded("effective_rank", written(tmp_path, "effective_rank", text))
    assert found.status == "failing" and len(found.hints) == 1 and words in found.hints[0]


def test_a_square_result_that_is_transposed_is_recognised():
    def cases():
        return [grading.Case(f"{n}", (np.random.default_rng(n).standard_normal((n, n)),)) for n in (3, 4)]

    key = grading.Key(("y",), lambda x: x @ x, cases, ())
    assert grading.grade_function(lambda x: (x @ x).T, key).hints == ["y: this is the transposed matrix."]
    assert grading.grade_function(lambda x: len(x) * x @ x, key).hints[0].startswith("y: right but for a factor")


# ---- the reader's errors ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, told",
    [
        ("x = 1\n\n\ndef effective_rank(X):\n    return X[9, 9]\n", "line 5: IndexError: index 9 is out of bounds"),
        ("import nowhere_to_be_found\n", "line 1: ModuleNotFoundError"),
        ("def effective_rank(X):\n    return X +\n", "line 2: SyntaxError: invalid syntax\n    return X +"),
        ("def effective_rank():\n    return 1\n", "TypeError: effective_rank() takes 0 positional arguments"),
        ("def rank(X):\n    return 1\n", "defines no function effective_rank"),
        ("raise SystemExit(3)\n", "line 1: SystemExit: 3"),
        ("def effective_rank(X):\n    return effective_rank(X)\n", "line 2: RecursionError"),
        (
            "from nano_simcse.geometry import unit_rows\n\n\ndef effective_rank(X):\n    unit_rows(0 * X)\n",
            "line 5: InputError",
        ),
    ],
)
def test_an_error_of_the_reader_is_told_with_its_line(text, told, tmp_path):
    found = graded("effective_rank", written(tmp_path, "effective_rank", text))
    assert found.status == "failing"
    assert told in found.hints[0] and "Traceback" not in found.hints[0] and "catalogue.py" not in found.hints[0]


def test_a_missing_file_is_one_sentence(tmp_path):
    found = graded("effective_rank", tmp_path)
    assert found.hints == ["ex11_effective_rank.py is not there; git restore brings the empty exercise back"]


# ---- experiments --------------------------------------------------------------------------------------------------


def test_the_verdicts_of_the_experiments_hold_for_other_seeds():
    (on, off), verdict = answer_keys.KEYS["dropout_off"].right(4)
    assert verdict == "worse alignment"
    assert off[0] > on[0] + 0.05 and off[1] < on[1] - 0.2  # paraphrases apart, strangers apart too: no collapse
    (cls, mean), verdict = answer_keys.KEYS["mean_pooling"].right(4)
    assert verdict == "mean" and mean > cls + 4
    scores, verdict = answer_keys.KEYS["data_or_epochs"].right((3, 4, 5))
    assert verdict == "data" and scores[0] < scores[1] < scores[2]


# ---- the command --------------------------------------------------------------------------------------------------


@pytest.fixture
def desk(tmp_path):
    """A reader's folder: all exercises empty, one solved, one failing."""
    for one in ALL:
        text = f"def {one.name}(*arguments):\n    raise NotImplementedError\n"
        (tmp_path / one.file_name).write_text(text, encoding="utf-8")
    shutil.copy(SOLUTIONS / "ex01_word_overlap.py", tmp_path)
    return written(tmp_path, "dropout_backward", "def dropout_backward(dy, keep, p):\n    print(p)\n    return dy\n")


def test_the_list_shows_every_exercise_with_its_state(desk, capsys):
    assert command.main([], folder=desk) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(ALL) + 2
    states = {line.split()[1]: line for line in lines[1:-1]}
    assert " solved " in states["word_overlap"] and " failing " in states["dropout_backward"]
    assert sum(" not started " in line for line in lines) == len(ALL) - 2
    assert lines[-1] == f"1 of {len(ALL)} solved"


@pytest.mark.parametrize(
    "wanted, code, words",
    [
        ("1", 0, "1 word_overlap (chapter 0): solved"),
        ("ex01", 0, "solved"),
        ("word_overlap", 0, "solved"),
        ("ex04_dropout_backward.py", 1, "keep mask"),
        ("3", 1, "not started\n  The task: chapters/exercises/ex03_infonce_grad.py"),
    ],
)
def test_one_exercise_is_graded(desk, capsys, wanted, code, words):
    assert command.main([wanted], folder=desk) == code
    assert words in capsys.readouterr().out


@pytest.mark.parametrize(
    "wanted, told",
    [
        ("infonce_gard", "exercises: no exercise 'infonce_gard'; did you mean infonce_grad?\n"),
        ("77", f"exercises: no exercise 77; they are numbered 1 to {len(ALL)}.\n"),
    ],
)
def test_an_unknown_exercise_is_one_sentence(capsys, wanted, told):
    assert command.main([wanted]) == 2
    assert capsys.readouterr() == ("", told)
