"""Figures that papers report and this package does not measure.

Every table names its source; SIMCSE is Gao, Yao and Chen, EMNLP 2021. A chapter shows an entry with quoted(...), so
that it is labelled and counted apart from results. Scores are 100 x Spearman correlation on the STS-B development set
unless the comment says otherwise.
"""

SIMCSE = "SimCSE (arXiv 2104.08821)"

#: Table 1: what is done to a sentence on top of dropout to make its positive.
TABLE_1_AUGMENTATION = {
    "none (dropout only)": 82.5,
    "crop 10%": 77.8,
    "crop 20%": 71.4,
    "crop 30%": 63.6,
    "word deletion 10%": 75.9,
    "word deletion 20%": 72.2,
    "word deletion 30%": 68.2,
    "delete one word": 75.9,
    "delete one word, without dropout": 74.2,
    "synonym replacement": 77.4,
    "masked word refill 15%": 62.2,
}

#: Table 2: (one encoder, two encoders) per training objective.
TABLE_2_OBJECTIVE = {
    "next sentence": (67.1, 68.9),
    "next 3 sentences": (67.4, 68.8),
    "delete one word": (75.9, 73.1),
    "dropout (SimCSE)": (82.5, 80.7),
}

#: Table 3: dropout rate; "fixed 0.1" uses one mask for both views.
TABLE_3_DROPOUT = {
    "0.0": 71.1,
    "0.01": 72.6,
    "0.05": 81.1,
    "0.1": 82.5,
    "0.15": 81.4,
    "0.2": 80.5,
    "0.5": 71.0,
    "fixed 0.1": 43.6,
}

#: Table 4: (sample of 134k pairs, all pairs) per source of supervised positives.
TABLE_4_PAIR_SOURCE = {
    "QQP": (81.8, 81.8),
    "Flickr30k": (81.5, 81.4),
    "ParaNMT": (79.7, 78.7),
    "NLI entailment": (84.1, 84.9),
    "NLI neutral": (82.6, 82.9),
    "NLI contradiction": (77.5, 77.6),
    "NLI all": (81.7, 81.9),
}
TABLE_4_WITH_HARD_NEGATIVES = 86.2
TABLE_4_WITH_ANLI = 85.0

#: Table 5: STS12 STS13 STS14 STS15 STS16 STS-B SICK-R (test sets, setting "all").
STS_TASKS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")
TABLE_5_STS = {
    "BERT-base, first-last average": (39.70, 59.38, 49.67, 66.03, 66.19, 53.87, 62.06),
    "BERT-base, flow": (58.40, 67.10, 60.85, 75.16, 71.22, 68.66, 64.47),
    "BERT-base, whitening": (57.83, 66.90, 60.90, 75.08, 71.31, 68.24, 63.73),
    "IS-BERT-base": (56.77, 69.24, 61.21, 75.23, 70.16, 69.21, 64.25),
    "SBERT-base": (70.97, 76.53, 73.19, 79.09, 74.30, 77.03, 72.91),
    "SimCSE unsupervised, BERT-base": (68.40, 82.41, 74.38, 80.91, 78.56, 76.85, 72.23),
    "SimCSE supervised, BERT-base": (75.30, 84.67, 80.19, 85.40, 80.82, 84.25, 80.39),
    "SimCSE supervised, RoBERTa-large": (77.46, 87.27, 82.36, 86.66, 83.93, 86.70, 81.95),
}
#: Table 5, the column "Avg." as printed. SBERT's is copied from the SBERT paper; its seven scores average 74.86.
TABLE_5_AVERAGE = {
    "BERT-base, first-last average": 56.70,
    "BERT-base, flow": 66.55,
    "BERT-base, whitening": 66.28,
    "IS-BERT-base": 66.58,
    "CT-BERT-base": 72.05,
    "SBERT-base": 74.89,
    "SimCSE unsupervised, BERT-base": 76.25,
    "SimCSE supervised, BERT-base": 81.57,
    "SimCSE supervised, RoBERTa-base": 82.52,
    "SimCSE supervised, RoBERTa-large": 83.76,
}
#: README of the SimCSE repository: supervised BERT-large, average of the seven test sets.
README_BERT_LARGE_SUPERVISED = 82.21

#: Table 6: (unsupervised, supervised) per way to pool.
TABLE_6_POOLING = {
    "[CLS] with MLP": (81.7, 86.2),
    "[CLS] with MLP in training only": (82.5, 85.8),
    "[CLS] without MLP": (80.9, 86.2),
    "first-last average": (81.2, 86.1),
}

#: Table 7: weight alpha of a row's own hard negative; without hard negatives the score is Table 4's 84.9.
TABLE_7_HARD_NEGATIVE_WEIGHT = {"0.5": 86.1, "1.0": 86.2, "2.0": 86.2}

#: Table A.1, BERT-base: (batch size, learning rate).
TABLE_A1_RECIPE = {"unsupervised": (64, 3e-5), "supervised": (512, 5e-5)}

#: Appendix A: passes over the data.
EPOCHS = {"unsupervised": 1, "supervised": 3}

#: Table B.2: average of the test sets under two protocols ("all": subsets pooled; "wmean": weighted mean of subsets).
TABLE_B2_PROTOCOL = {"SBERT-base": (74.85, 73.55), "SimCSE supervised, BERT-base": (81.57, 80.41)}

#: Table D.1: similarity in the supervised loss.
TABLE_D1_TEMPERATURE = {"dot product": 85.9, "cosine, 0.05": 86.2, "cosine, 0.1": 82.0, "cosine, 1": 64.0}

#: Table E.1: average of the seven transfer tasks, accuracy in percent.
TABLE_E1_TRANSFER = {
    "IS-BERT-base": 85.83,
    "SimCSE unsupervised, BERT-base": 85.81,
    "SBERT-base": 87.41,
    "SimCSE supervised, BERT-base": 86.51,
}

#: Section 4 and footnote 2: sentences of Wikipedia, and steps between two evaluations on STS-B dev.
UNSUPERVISED_SENTENCES = 1_000_000
STEPS_BETWEEN_EVALUATIONS = 250

#: Sentence pairs of SNLI and MNLI, training, development and test together (their data cards).
NLI_PAIRS = {"SNLI": 570_152, "MNLI": 432_702}

#: Training classes of SNLI and MNLI; the released file of triples (SimCSE repository, issue 238).
ENTAILMENT_PAIRS = {"SNLI": 183_416, "MNLI": 130_899}
RELEASED_TRIPLES = 275_601
