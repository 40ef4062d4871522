"""Chapter 0: one word is enough to change what a sentence says."""

# %% [markdown]
# A contrastive method needs pairs that mean the same. Images have an easy source: crop, flip, change the light, and the
# picture still shows the dog. Can sentences be edited in the same way?
# This page makes every one-word edit of a few sentences whose meaning is known and asks what each edit did to it.
# The sentences come from a small grammar, so "same meaning" is a rule here and nobody's opinion.

# %% One sentence, three edits
import itertools
from dataclasses import replace

import numpy as np
from grammar import Frame, kind_of, parse, random_frame, relation, say, vocabulary
from lesson import check, check_true, quoted, table
from quoted_tables import SIMCSE, TABLE_1_AUGMENTATION

frame = Frame("woman", "sell", "guitar", place="park", negated=True)
sentence = say(frame)
edits = {
    "the sentence": sentence,
    "one word deleted": "the woman sells the guitar in the park",
    "one word replaced": "the woman never buys the guitar in the park",
    "another replaced": "the lady never sells the guitar in the park",
}
relations = [relation(frame, parse(text)) for text in edits.values()]
table([[text, r] for text, r in zip(edits.values(), relations, strict=True)], "what an edit does", rows=list(edits))
check_true(relations[1] == "contradiction", "deleting 'never' turns the sentence into its contradiction")
check_true(relations[2] == "neutral", "'buys' for 'sells' under 'never' leaves both open")
check_true(relations[3] == "paraphrase", "'lady' for 'woman' keeps the meaning")

dog_man = Frame("dog", "chase", "man")
man_dog = parse("the man chases the dog")
check_true(sorted(say(dog_man).split()) == sorted(say(man_dog).split()), "two words swapped: the same bag of words")
check_true(relation(dog_man, man_dog) == "neutral", "two words swapped: another scene")

# %% Overlap of words is not overlap of meaning
# Share of common words, |A and B| / |A or B|: the contradiction is nearer than a paraphrase with other words.
paraphrase = "the fiddle is rapidly mended by the lady"
original = "the woman quickly repairs the violin"
flipped = "the woman slowly repairs the violin"
words = [set(text.split()) for text in (original, flipped, paraphrase)]
overlap = np.array([len(words[0] & other) / len(words[0] | other) for other in words[1:]])
table(overlap, "share of common words with the original", columns=["contradiction", "paraphrase"])
check(overlap, "0.667 0.091", "common words: contradiction, paraphrase")
check_true(relation(parse(original), parse(flipped)) == "contradiction", "'slowly' for 'quickly' contradicts")
check_true(relation(parse(original), parse(paraphrase)) == "paraphrase", "no content word in common, the same meaning")

# %% Every one-word edit of forty sentences
# Half of them are denied ("never"). Deletion: each word that carries meaning. Replacement: each such word by every
# other word of its kind (a noun by a noun, a verb by a verb). Insertion: "never" before the verb of the plain ones.
# Swap: every two words of one kind. What lacks a verb or a noun afterwards is "broken".
rng = np.random.default_rng(0)
frames = [replace(random_frame(rng), negated=k % 2 == 1) for k in range(40)]
lexicon = vocabulary()


def outcome(before, tokens):
    """What an edited text says of the scene: its relation to it, or broken."""
    after = parse(" ".join(tokens))
    if None in (after.agent, after.action, after.object):
        return "broken"
    return relation(before, after)


kinds = ["paraphrase", "entailment", "neutral", "contradiction", "broken"]
counts = {name: dict.fromkeys(kinds, 0) for name in ("delete", "replace", "insert never", "swap")}
for before in frames:
    tokens = say(before).split()
    for k, word in enumerate(tokens):
        kind = kind_of(word)
        if kind or word == "never":
            counts["delete"][outcome(before, tokens[:k] + tokens[k + 1 :])] += 1
        if kind:
            for other in lexicon:
                if other != word and kind_of(other) == kind:
                    counts["replace"][outcome(before, [*tokens[:k], other, *tokens[k + 1 :]])] += 1
        if kind == "present" and not before.negated:
            counts["insert never"][outcome(before, [*tokens[:k], "never", *tokens[k:]])] += 1
    for i, j in itertools.combinations(range(len(tokens)), 2):
        if kind_of(tokens[i]) and kind_of(tokens[i]) == kind_of(tokens[j]):
            swapped = list(tokens)
            swapped[i], swapped[j] = tokens[j], tokens[i]
            counts["swap"][outcome(before, swapped)] += 1
tally = np.array([[row[kind] for kind in kinds] for row in counts.values()])
share = tally / tally.sum(axis=1, keepdims=True)
table(tally, "edits by what they do to the meaning", rows=list(counts), columns=kinds)
table(100 * share, "in percent", rows=list(counts), columns=kinds, digits=1)
check(tally[0], "0 18 17 20 120", "delete a word: paraphrase, entailment, neutral, contradiction, broken")
check(tally[1], "145 98 4385 103 0", "replace a word: the same five")
check(share[1, 0], "3.1%", "replace a word: still the same meaning (a synonym was hit)")
check(tally[2], "0 0 0 20 0", "insert 'never': always a contradiction")
check(tally[3], "0 0 40 0 0", "swap two nouns: always another scene")
denied = sum(before.negated for before in frames)
check_true(counts["delete"]["contradiction"] == denied, "the deletions that flip are those of 'never'")
check(tally[:, 0].sum() / tally.sum(), "2.9%", "all edits: still the same meaning")

# %% What follows
# As positives such pairs are wrong labels: the loss would pull a sentence and its contradiction together. Synonyms are
# safe, but they need a dictionary, and a model that looks only for shared words is never corrected by them.
# The paper measured edits on top of dropout (not instead of it) and each one lost against dropout alone. Dropout
# changes no word: both views are the same sentence, so the label "same meaning" cannot be wrong.
alone = quoted(str(TABLE_1_AUGMENTATION["none (dropout only)"]), "dropout only, STS-B dev", f"{SIMCSE}, Table 1")
for edit in ("delete one word", "synonym replacement", "masked word refill 15%"):
    score = quoted(str(TABLE_1_AUGMENTATION[edit]), f"{edit} and dropout, STS-B dev", f"{SIMCSE}, Table 1")
    check_true(score < alone, f"reported: {edit} is worse than dropout alone")
check(alone - TABLE_1_AUGMENTATION["delete one word"], "6.6", "reported: points lost by deleting one word")
same = [relation(before, parse(say(before))) for before in frames]
check_true(set(same) == {"paraphrase"}, "forty sentences, unedited and read back: the same meaning")
