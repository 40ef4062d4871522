"""Teacher and student: a sentence and its translation both go where the teacher puts the sentence.

Forward      t_i   teacher's vector of sentence i in the language it knows, fixed
             s_i   student's vector of the same sentence,   r_i  student's vector of its translation
             loss = mean_i ( |s_i - t_i|^2 + |r_i - t_i|^2 )

Backward     dL/ds_i = 2 (s_i - t_i) / B,    dL/dr_i = 2 (r_i - t_i) / B;  the teacher gets nothing

             No negatives, and yet no collapse: the targets do not move, so one point for everything costs the
             variance of the teacher's vectors. Lengths count; normalise the teacher if only directions are wanted.

Source: Reimers and Gurevych, arXiv 2004.09813, Section 2 (summed over entries here, averaged over them in some code).
"""

from ..arrays import require_floats
from ..errors import InputError


def distillation(sources, translations, teacher):
    """Mean squared distance of B sentences and of their translations to the teacher's vectors.

    sources, translations, teacher (B, D), row i of each belong together. Returns (loss, backward): loss a 0-d array;
    backward() -> (dsources, dtranslations). Raises InputError for arrays that are not of floats, or shapes that
    differ or hold no row.
    """
    require_floats(sources=sources, translations=translations, teacher=teacher)
    shape = teacher.shape
    if len(shape) != 2 or shape[0] == 0 or not sources.shape == translations.shape == shape:
        raise InputError(
            f"sources {sources.shape}, translations {translations.shape} and teacher {shape} "
            "must be three (B, D) arrays of one shape"
        )
    near, far = sources - teacher, translations - teacher
    loss = ((near * near) + (far * far)).sum(axis=1).mean()

    def backward():
        scale = teacher.dtype.type(2 / shape[0])
        return near * scale, far * scale

    return loss, backward
