"""Exercises: eighteen small functions to write, graded with hints.

    python -m chapters.exercises                 all of them with their state
    python -m chapters.exercises 3               grade one, by number or by name
    python -m chapters.exercises infonce_grad

Each file exNN_name.py beside this one holds a task and a function that raises NotImplementedError. Replace its body and
grade it. The grader calls it with arguments of its own, compares with the package (nano_simcse), and says what kind of
mistake the numbers show, never what to write. `git restore chapters/exercises/exNN_name.py` empties a file again;
solutions/ has one worked answer for each.
"""
