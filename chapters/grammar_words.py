"""The words of the grammar: what can act, be acted on, where and how, and what excludes what."""

# concept: (words, the first one is the plain one; concept above it)
AGENTS = {
    "person": (("person", "human"), None),
    "animal": (("animal", "beast"), None),
    "child": (("child", "kid"), "person"),
    "woman": (("woman", "lady"), "person"),
    "man": (("man", "gentleman"), "person"),
    "girl": (("girl", "lass"), "child"),
    "boy": (("boy", "lad"), "child"),
    "doctor": (("doctor", "physician"), "person"),
    "teacher": (("teacher", "instructor"), "person"),
    "cook": (("cook", "chef"), "person"),
    "dog": (("dog", "hound"), "animal"),
    "cat": (("cat", "feline"), "animal"),
    "horse": (("horse", "pony"), "animal"),
}
OBJECTS = {
    "instrument": (("instrument",), None),
    "vehicle": (("vehicle",), None),
    "container": (("container",), None),
    "building": (("building",), None),
    "guitar": (("guitar",), "instrument"),
    "violin": (("violin", "fiddle"), "instrument"),
    "car": (("car", "automobile"), "vehicle"),
    "bicycle": (("bicycle", "bike"), "vehicle"),
    "box": (("box", "crate"), "container"),
    "bottle": (("bottle", "flask"), "container"),
    "house": (("house", "home"), "building"),
    "barn": (("barn", "shed"), "building"),
}
PLACES = {
    "outdoors": (("outdoors", "outside"), None),
    "indoors": (("indoors", "inside"), None),
    "park": (("park",), "outdoors"),
    "garden": (("garden", "yard"), "outdoors"),
    "kitchen": (("kitchen",), "indoors"),
    "office": (("office", "bureau"), "indoors"),
}
MANNERS = {
    "quickly": (("quickly", "rapidly"), None),
    "slowly": (("slowly", "gradually"), None),
    "quietly": (("quietly", "silently"), None),
    "loudly": (("loudly", "noisily"), None),
}
# action: ((present, participle) per word, the opposite action, what it can be done to)
_THINGS = ("instrument", "vehicle", "container")
ACTIONS = {
    "buy": ((("buys", "bought"), ("purchases", "purchased")), "sell", (*_THINGS, "building")),
    "sell": ((("sells", "sold"), ("vends", "vended")), "buy", (*_THINGS, "building")),
    "repair": ((("repairs", "repaired"), ("mends", "mended")), "break", _THINGS),
    "break": ((("breaks", "broken"), ("damages", "damaged")), "repair", _THINGS),
    "open": ((("opens", "opened"), ("unseals", "unsealed")), "close", ("container",)),
    "close": ((("closes", "closed"), ("shuts", "shut")), "open", ("container",)),
    "find": ((("finds", "found"), ("discovers", "discovered")), "lose", _THINGS),
    "lose": ((("loses", "lost"), ("misplaces", "misplaced")), "find", _THINGS),
    "love": ((("loves", "loved"), ("adores", "adored")), "hate", ("person", "animal", "building", "instrument")),
    "hate": ((("hates", "hated"), ("detests", "detested")), "love", ("person", "animal", "building", "instrument")),
    "chase": ((("chases", "chased"), ("pursues", "pursued")), None, ("person", "animal")),
    "greet": ((("greets", "greeted"), ("welcomes", "welcomed")), None, ("person", "animal")),
}
NEGATION = "never"
NOUNS = {**AGENTS, **OBJECTS}
OPPOSITE = {"outdoors": "indoors", "indoors": "outdoors", "quickly": "slowly", "slowly": "quickly"}
OPPOSITE |= {"quietly": "loudly", "loudly": "quietly"} | {a: o for a, (_, o, _) in ACTIONS.items() if o}
