"""Docstring in, plain English out: the markup is taken off and what is not prose is left behind.

Three passes. `paragraphs` walks the lines and leaves out code, doctests, tables, directives and footnotes,
noting the section each paragraph stands in. `plain` takes inline markup off one paragraph. `sentences` cuts
it, and `is_prose` keeps what reads as an English sentence. `read_docstring` puts them together.
Conventions read: reStructuredText, numpydoc headings, Google-style headings, and the standard library's own.
"""

import inspect
import re
from typing import NamedTuple


class Prose(NamedTuple):
    """What one docstring says, as sentences; `sentences` holds every one of them, in order."""

    summary: str
    description: list[str]
    sentences: list[str]


class Paragraph(NamedTuple):
    section: str  # lower-case heading above it, "" before the first heading
    indent: int
    text: str


# Marks text that cannot be read as words (formulas, placeholders, addresses): its sentence is not kept.
GAP = "\N{OBJECT REPLACEMENT CHARACTER}"

HEADINGS = (
    "args|arguments|parameters|keyword args|keyword arguments|options|returns?|yields?|raises|warns|"
    "examples?|usage|attributes|methods|notes?|see also|references|todo"
)
COLON_HEADING = re.compile(rf"({HEADINGS})\s*:\s*$", re.IGNORECASE)
UNDERLINE = re.compile(r"([-=~^*#+\"'`_])\1{2,}\s*$")
TABLE_RULE = re.compile(r"\+[-=+ ]{3,}$|\|.*\|$|[-=]{2,}( +[-=]{2,})+$")
DIRECTIVE = re.compile(r"\.\.(\s|$)")
ADMONITION = re.compile(r"\.\. (note|warning|tip|hint|important|caution|attention)::\s*(.*)", re.IGNORECASE)
BULLET = re.compile(r"([-*+\u2022]|\(?\d{1,2}[.)]|\(?[a-z]\))\s+(?=\S)")
FIELD = re.compile(r":[a-z]+( [^:]*)?:(\s|$)|@\w+")
PLACEHOLDER_LINE = re.compile(r"%\([^)]*\)[sd]?\.?$|\{\w+\}$")
# name(arguments) -> result, alone or with the summary behind it
SIGNATURE = re.compile(
    r"[\w.]+ ?\([^()]*(\([^()]*\)[^()]*)*\)(\s*(->|=>|=)\s*[\w.\[\], ()|]+?)?\s*(--|:|$|(?=[A-Z]))"
)

DEFINITIONS = ("parameters", "args", "arguments", "returns", "return", "yields", "attributes")
NOT_DESCRIPTION = re.compile(HEADINGS, re.IGNORECASE)


def read_docstring(text: str) -> Prose:
    """Split one docstring into its summary, its description and all its sentences.

    The summary is the first sentence of the first paragraph. The description is the prose that follows it
    before the first heading; where none is left, the prose under "Notes"; where there are no notes, what is
    said about the parameters and the result. Each of its sentences ends with a mark, so that
    `sentences(" ".join(description))` gives them back. Either is empty when there is none.
    """
    first, rest = _opening(paragraphs(text))
    head = sentences(plain(first))
    opening = [s for s in head if is_prose(s)]
    told = [(p.section, p.indent, s) for p in rest for s in sentences(plain(p.text)) if is_prose(s)]
    described = opening[1:] if opening[:1] == head[:1] else opening
    described += [s for section, indent, s in told if section == "" and indent == 0]
    for sections in (("notes", "note"), ("",), DEFINITIONS):
        described = described or [s for section, _, s in told if section in sections]
    return Prose(
        summary=head[0] if head and is_summary(head[0]) else "",
        description=[s if FINISHED.search(s) else s + "." for s in described],
        sentences=opening + [s for _, _, s in told],
    )


def _opening(found: list[Paragraph]) -> tuple[str, list[Paragraph]]:
    """The text of the first paragraph and the others; a call signature at the very top is passed over."""
    for at, paragraph in enumerate(found[:3]):
        text = SIGNATURE.sub("", paragraph.text, count=1).strip()
        if text:
            return (text if paragraph.section == "" else ""), found[at + 1 :]
    return "", found


def paragraphs(text: str) -> list[Paragraph]:
    """The paragraphs of a docstring that may be prose, each a run of lines at one depth of indentation."""
    lines = inspect.cleandoc(text.replace("\t", "    ")).split("\n")
    found: list[Paragraph] = []
    section, gathered = "", []
    level, depth = 0, 0  # where the paragraph begins, and where its further lines do
    hidden_below = None  # while set, lines indented deeper than this belong to code or to a directive
    in_doctest = False

    def close():
        nonlocal hidden_below
        if gathered:
            joined = " ".join(gathered)
            if joined.endswith("::"):
                hidden_below = level
            if not any(TABLE_RULE.match(line) for line in gathered) and not FIELD.match(joined):
                found.append(Paragraph(section, level, joined.removesuffix("::") + (":" * joined.endswith("::"))))
            gathered.clear()

    for at, raw in enumerate(lines):
        line, indent = raw.strip(), len(raw) - len(raw.lstrip())
        following = lines[at + 1].strip() if at + 1 < len(lines) else ""
        if not line:
            close()
            in_doctest = False
            continue
        if hidden_below is not None and indent > hidden_below:
            continue
        hidden_below = None
        in_doctest = in_doctest or line.startswith(">>>")
        if in_doctest or (UNDERLINE.match(line) and not gathered) or PLACEHOLDER_LINE.match(line):
            continue
        if not gathered and UNDERLINE.match(following) and len(following) >= 3:
            section = _heading(line, found)
        elif COLON_HEADING.match(line):
            close()
            section = line.rstrip(": ").lower()
        elif DIRECTIVE.match(line):
            close()
            if kept := ADMONITION.match(line):
                level = depth = indent
                gathered += [kept[2]] if kept[2] else []
            else:
                hidden_below = indent
        else:
            bullet = BULLET.match(line)
            if bullet or indent != depth:
                close()
                # A list item hangs: its later lines stand under its text, not under its mark.
                level, depth = indent, indent + (bullet.end() if bullet else 0)
            if hidden_below is None or indent <= hidden_below:
                gathered.append(line[bullet.end() :] if bullet else line)
    close()
    return found


def _heading(line: str, found: list[Paragraph]) -> str:
    # A title above all text (as modules have) opens the docstring; it does not start a section.
    return line.lower().rstrip(":") if found or NOT_DESCRIPTION.fullmatch(line) else ""


# (what must be there for the pattern to match, pattern, replacement), in the order of application
INLINE = [
    (trigger, re.compile(pattern, re.IGNORECASE), replacement)
    for trigger, pattern, replacement in (
        ("`", r":(?:math|eq|cite\w*|download|rc|doi|arxiv):`[^`]*`", GAP),
        ("$", r"\$[^$]+\$", GAP),
        ("%(", r"%\(\w[^)]*\)[sdrfg]?", GAP),
        ("{", r"\{\w+\}", GAP),
        ("|", r"\|\w+\|", GAP),
        ("`", r"(?::[a-z:+-]+:)?`~[\w.]*?(\w+(?:\(\))?)`", r"\1"),  # :role:`~package.name`
        ("`", r"(?::[a-z:+-]+:)?`[!~]*([^`<]+?)\s*<[^`>]+>`_{0,2}", r"\1"),  # :role:`text <target>`, `text <address>`_
        ("`", r":[a-z:+-]+:`[!.]*([^`]+)`", r"\1"),
        ("``", r"``([^`]*)``", r"\1"),
        ("``", r"``([^`']*)''", r'"\1"'),  # quotation marks as TeX has them
        ("`", r"`[~!]?\.?([^`]+)`_{0,2}", r"\1"),
        ("`", r"(?<!\w)`([^`']{1,40})'", r"'\1'"),
        ("`", r":math:|:\w+:`|``+", GAP),  # an opening without its end
        # A footnote mark goes; where it stands for a noun ("given in [1]_") its sentence has a hole.
        ("[", r"\b(in|see|of|by|from|to|and|or|with|ref|eq|pp?\.)\.?\s\[[\w#*+., -]{1,30}\]_?(?!\w)", GAP),
        ("]_", r"\s?\[[\w#*+., -]{1,30}\]_(?!\w)", ""),
        ("**", r"(?<!\w)\*\*(\S(?:[^*]*\S)?)\*\*(?!\w)", r"\1"),
        ("*", r"(?<![\w*])\*([^\s*](?:[^*]*[^\s*])?)\*(?![\w*])", r"\1"),
        ("//", r"(?:https?|ftp)://\S+", GAP),
        ("\\", r"\\([^\w\s])", r"\1"),
    )
]


def plain(text: str) -> str:
    """One paragraph without inline markup; GAP stands where something unreadable was."""
    for trigger, pattern, replacement in INLINE:
        if trigger in text:
            text = pattern.sub(replacement, text)
    return " ".join(re.sub(r"[\x00-\x1f\x7f]", " ", text).split())


# A full stop after these ends no sentence. Single capitals are not among them: here they are mostly matrices.
ABBREVIATION = re.compile(
    r"(?:^|[\s(\[])(?:e\.g|i\.e|cf|vs|al|figs?|eqs?|sec|ch|nos|vol|pp|eds?|dr|mr|st|resp|approx|viz|refs?)\.$",
    re.IGNORECASE,
)
BOUNDARY = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9])")


def sentences(text: str) -> list[str]:
    """Cut plain text after each full stop, question or exclamation mark that a capital or digit follows."""
    cut, start = [], 0
    for boundary in BOUNDARY.finditer(text):
        end = boundary.start() + len(boundary[0].rstrip())
        if not ABBREVIATION.search(text[start : boundary.start()]):
            cut.append(text[start:end].strip())
            start = boundary.end()
    cut.append(text[start:].strip())
    return [sentence for sentence in cut if sentence]


# The commonest short words of English: a run of four words without any is hardly ever a sentence.
COMMON = frozenset(
    "a an and are as at be been but by can do does for from has have if in into is it its may more not of on "
    "one only or other should such than that the their them then there these they this to use used using "
    "was when where which will with without you your all any each no".split()
)
WORD = re.compile(r"[A-Za-z][A-Za-z'\u2019-]*")


# What code, a definition list or a sentence that ran into a formula looks like.
NOT_PROSE = re.compile(
    rf"{GAP}|[=<>{{}}|\\_^~]{{2,}}|\w\(.*=|^[\w*.,' ]+ : |/\w+/\w+/|[\w)]\[.*\[|^[a-z]\w*[_(]|[:,;]$"
)
BREAKS_OFF = frozenset("a and are as at be by follows for form from given in is like of or the to where with".split())
STARTED = re.compile(r"[\"'(\[]?[A-Z0-9]")
FINISHED = re.compile(r"[.!?][\"')]*$")


def is_prose(sentence: str) -> bool:
    """True for an English sentence: 4 to 60 words, mostly letters, whole, no code.

    It must begin like a sentence and break off nowhere obvious; the last full stop may be missing, because
    much documentation leaves it out.
    """
    return (
        _is_words(sentence, shortest=4, longest=60)
        and STARTED.match(sentence) is not None
        and not _breaks_off(sentence)
        and not COMMON.isdisjoint(word.lower() for word in WORD.findall(sentence))
    )


def is_summary(sentence: str) -> bool:
    """True for what can head an entry: 2 to 40 words, mostly letters, no code; "Bessel functions" will do."""
    # " [" is the usage line of a command: "undisplay [expression]".
    return _is_words(sentence, shortest=2, longest=40) and not _breaks_off(sentence) and " [" not in sentence


def _breaks_off(sentence: str) -> bool:
    return sentence.split()[-1].lower() in BREAKS_OFF or ABBREVIATION.search(sentence[-12:]) is not None


def _is_words(text: str, shortest: int, longest: int) -> bool:
    tokens = text.split()
    words = WORD.findall(text)
    return (
        shortest <= len(tokens) <= longest
        and len(words) >= min(shortest, len(tokens) - 1)
        and sum(map(len, words)) >= 0.8 * sum(map(len, tokens))
        and NOT_PROSE.search(text) is None
    )


def same_text(text: str) -> str:
    """A text reduced to what is compared: lower case, words and digits only, single spaces."""
    return " ".join(re.findall(r"\w+", text.casefold()))
