"""Sentences whose meaning is known, because they are made from it.

A Frame says who does what to what, where and how; `say` turns it into a sentence, `parse` turns a sentence, even a
damaged one, back into a Frame. `relation` and `similarity` compare two Frames by rules, so that paraphrase, entailment,
contradiction and graded similarity are facts about a pair and not somebody's label.

    >>> frame = Frame("woman", "sell", "guitar", place="park")
    >>> say(frame)
    'the woman sells the guitar in the park'
    >>> relation(frame, parse("the lady never sells the guitar"))
    'contradiction'

Conventions: two sentences speak of the same scene; "never" denies the scene; places and manners that exclude each other
contradict; anything else that is not stated is open (neutral).
"""

from dataclasses import dataclass, replace

import numpy as np
from grammar_words import ACTIONS, AGENTS, MANNERS, NEGATION, NOUNS, OPPOSITE, PLACES

#: What each part of a frame weighs in `similarity`.
WEIGHTS = {"action": 0.35, "agent": 0.25, "object": 0.25, "place": 0.10, "manner": 0.05}


@dataclass(frozen=True)
class Frame:
    """Who (agent) does what (action) to what (object), where and how; None is left open. negated: "never"."""

    agent: str | None
    action: str | None
    object: str | None
    place: str | None = None
    manner: str | None = None
    negated: bool = False


# ---- meaning --------------------------------------------------------------------------------------------------


def above(concept):
    """The concept and everything more general: girl, child, person."""
    chain = [concept]
    for kind in (NOUNS, PLACES, MANNERS):
        while chain[-1] in kind and kind[chain[-1]][1] is not None:
            chain.append(kind[chain[-1]][1])
    return chain


def opposed(a, b):
    """Whether two concepts exclude each other: buy and sell, park and kitchen, quickly and slowly."""
    return a is not None and b is not None and any(OPPOSITE.get(x) in above(b) for x in above(a))


def entails(a, b):
    """Whether scene a implies scene b; both plain, or both denied, where the implication turns round."""
    if a.negated != b.negated:
        return False
    if a.negated:
        a, b = b, a
    return all(
        getattr(b, slot) is None or (getattr(a, slot) is not None and getattr(b, slot) in above(getattr(a, slot)))
        for slot in WEIGHTS
    )


def relation(a, b):
    """How b follows from a: paraphrase, entailment, contradiction or neutral."""
    if entails(a, b):
        return "paraphrase" if entails(b, a) else "entailment"
    if a.negated != b.negated:
        denied, stated = (a, b) if a.negated else (b, a)
        return "contradiction" if entails(stated, replace(denied, negated=False)) else "neutral"
    if not a.negated and any(opposed(getattr(a, slot), getattr(b, slot)) for slot in ("action", "place", "manner")):
        rest = [slot for slot in ("agent", "object", "action") if not opposed(getattr(a, slot), getattr(b, slot))]
        if all(_compatible(getattr(a, slot), getattr(b, slot)) for slot in rest):
            return "contradiction"
    return "neutral"


def similarity(a, b):
    """Graded similarity of two frames, 0 (nothing in common) to 5 (same meaning); symmetric.

    The weighted mean over the parts that either frame states: 1 the same, 0.75 one above the other, 0.7 stated by one
    only, 0.4 the same family, 0.2 opposites, 0 unrelated. If they contradict, or just one is denied, 0.4 of that.
    """
    stated = [slot for slot in WEIGHTS if getattr(a, slot) is not None or getattr(b, slot) is not None]
    total = sum(WEIGHTS[slot] for slot in stated)
    score = sum(WEIGHTS[slot] * _credit(getattr(a, slot), getattr(b, slot)) for slot in stated)
    clash = a.negated != b.negated or "contradiction" in (relation(a, b), relation(b, a))
    return 5 * (score / total if total else 1.0) * (0.4 if clash else 1.0)


def _compatible(x, y):
    return x is None or y is None or x in above(y) or y in above(x)


def _credit(x, y):
    if x == y:
        return 1.0
    if x is None or y is None:
        return 0.7
    if x in above(y) or y in above(x):
        return 0.75
    if opposed(x, y):
        return 0.2
    return 0.4 if above(x)[-1] == above(y)[-1] else 0.0


# ---- words ----------------------------------------------------------------------------------------------------


def say(frame, rng=None):
    """The frame as a sentence: the plain words in plain order, or with rng any synonyms and any word order."""
    plain = rng is None
    choose = (lambda options: options[0]) if plain else lambda options: options[int(rng.integers(len(options)))]
    present, participle = choose(ACTIONS[frame.action][0])
    agent, thing = (f"the {choose(NOUNS[noun][0])}" for noun in (frame.agent, frame.object))
    manner = [choose(MANNERS[frame.manner][0])] if frame.manner else []
    before = [NEGATION] if frame.negated else []
    where = _where(frame.place, choose) if frame.place else []
    form = "active" if plain else choose(("active", "active", "passive", "fronted"))
    if form == "passive":
        words = [thing, "is", *before, *manner, participle, "by", agent, *where]
    elif form == "fronted":
        words = [*where, agent, *before, *manner, present, thing]
    else:
        words = [agent, *before, present, thing, *where, *manner]
    return " ".join(words)


def _where(place, choose):
    word = choose(PLACES[place][0])
    return [word] if PLACES[place][1] is None else ["in the", word]


def parse(sentence):
    """Read a sentence of this grammar, damaged or not: parts that are missing or out of place become None.

    The word order decides who acts: nouns before the verb and after it, the other way round in a passive.
    """
    nouns, found = [], {"action": None, "place": None, "manner": None}
    verb_at, passive, negated = None, False, False
    for at, word in enumerate(sentence.lower().split()):
        kind, concept = _LEXICON.get(word, (None, None))
        if word == NEGATION:
            negated = not negated
        elif kind == "noun":
            nouns.append((at, concept))
        elif kind is not None:
            passive = passive or kind == "participle"
            slot = "action" if kind in ("present", "participle") else kind
            if found[slot] is None:
                found[slot] = concept
                verb_at = at if slot == "action" else verb_at
    before = [c for at, c in nouns if verb_at is None or at < verb_at]
    after = [c for at, c in nouns if verb_at is not None and at > verb_at]
    first, last = (before[-1] if before else None), (after[0] if after else None)
    agent, thing = (last, first) if passive else (first, last)
    return Frame(agent, found["action"], thing, found["place"], found["manner"], negated)


def _build_lexicon():
    lexicon = {w: ("noun", c) for c, (words, _) in NOUNS.items() for w in words}
    for kind, concepts in (("place", PLACES), ("manner", MANNERS)):
        lexicon |= {w: (kind, c) for c, (words, _) in concepts.items() for w in words}
    for concept, (forms, _, _) in ACTIONS.items():
        for present, participle in forms:
            lexicon |= {present: ("present", concept), participle: ("participle", concept)}
    return lexicon


_LEXICON = _build_lexicon()


def kind_of(word):
    """noun, present, participle, place or manner; None for the, in, is, by, never and unknown words."""
    return _LEXICON.get(word, (None, None))[0]


def vocabulary():
    """Every word the grammar can say, sorted."""
    return sorted({*_LEXICON, NEGATION, "the", "in", "is", "by"})


# ---- drawing --------------------------------------------------------------------------------------------------


def random_frame(rng):
    """A scene with specific words; half of the scenes have a place, a third a manner."""
    action = _pick(rng, list(ACTIONS))
    agent = _pick(rng, _leaves(AGENTS))
    things = [c for c in _leaves(NOUNS) if above(c)[-1] in ACTIONS[action][2] and c != agent]
    place = _pick(rng, _leaves(PLACES)) if rng.random() < 1 / 2 else None
    manner = _pick(rng, list(MANNERS)) if rng.random() < 1 / 3 else None
    return Frame(agent, action, _pick(rng, things), place, manner)


def entailed(frame, rng):
    """A frame that follows from this one and says less: a part more general, or left out."""
    options = [replace(frame, **{slot: None}) for slot in ("place", "manner") if getattr(frame, slot)]
    for slot in ("agent", "object", "place"):
        if getattr(frame, slot):
            options += [replace(frame, **{slot: concept}) for concept in above(getattr(frame, slot))[1:]]
    return _pick(rng, options)


def contradicted(frame, rng):
    """A frame that cannot be true with this one: denied, or one part turned into its opposite."""
    options = [replace(frame, negated=not frame.negated)]
    for slot in ("action", "manner"):
        if getattr(frame, slot) in OPPOSITE:
            options.append(replace(frame, **{slot: OPPOSITE[getattr(frame, slot)]}))
    if frame.place:
        options += [replace(frame, place=c) for c in _leaves(PLACES) if opposed(c, frame.place)]
    return _pick(rng, options)


def neutral(frame, rng):
    """A frame that may or may not be true with this one: a detail added, or one part replaced by its like."""
    options = [replace(frame, place=c) for c in PLACES] if frame.place is None else []
    options += [replace(frame, manner=c) for c in MANNERS] if frame.manner is None else []
    for slot in ("agent", "object"):
        old = getattr(frame, slot)
        options += [replace(frame, **{slot: c}) for c in _leaves(NOUNS) if c != old and above(c)[-1] == above(old)[-1]]
    return _pick(rng, [o for o in options if o.agent != o.object and relation(frame, o) == "neutral"])


def sentences(count, seed=0, rounds=50):
    """count different sentences, in the order drawn. Raises ValueError when rounds * count draws do not give them."""
    rng, seen = np.random.default_rng(seed), {}
    for _ in range(rounds * count):
        seen.setdefault(say(random_frame(rng), rng), None)
        if len(seen) == count:
            return list(seen)
    raise ValueError(f"asked for {count} different sentences, found {len(seen)}")


def triples(count, seed=0, third=contradicted):
    """count (premise, entailment, contradiction) sentences; third=neutral puts a neutral one last."""
    rng = np.random.default_rng(seed)
    frames = [random_frame(rng) for _ in range(count)]
    return [(say(f, rng), say(entailed(f, rng), rng), say(third(f, rng), rng)) for f in frames]


def graded_pairs(count, seed=0):
    """count (sentence, sentence, score 0 to 5): paraphrases, one or two changes, other scenes."""
    rng, pairs = np.random.default_rng(seed), []
    for k in range(count):
        a = random_frame(rng)
        change = k % 6
        b = random_frame(rng) if change == 5 else a
        if change in (1, 4):
            b = entailed(b, rng)
        if change in (2, 4):
            b = neutral(b, rng)
        if change == 3:
            b = contradicted(b, rng)
        pairs.append((say(a, rng), say(b, rng), similarity(a, b)))
    return pairs


def _leaves(kind):
    general = {parent for _, parent in kind.values()}
    return [concept for concept in kind if concept not in general and concept not in _ROOTS]


_ROOTS = {c for kind in (NOUNS, PLACES) for c, (_, parent) in kind.items() if parent is None}


def _pick(rng, options):
    return options[int(rng.integers(len(options)))]
