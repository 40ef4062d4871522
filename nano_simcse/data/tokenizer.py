"""Sentences to token ids: BERT's WordPiece, by the `tokenizers` library, trained here or loaded.

    "Dropout is noise."  ->  [CLS] drop ##out is noise . [SEP]  ->  int32 ids

The library does the work; this file fixes the recipe (lower case, no accents, words split at punctuation, one
[CLS] in front and one [SEP] behind), makes its training repeatable, and checks what comes from disk.
"""

import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer as Library
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers
from tqdm import tqdm

from nano_simcse.data.records import expanded
from nano_simcse.errors import CheckpointError, InputError
from nano_simcse.files import atomic_write
from nano_simcse.progress import hidden

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
LONGEST_WORD = 100  # characters; a longer word is [UNK], as for BERT
LARGEST_VOCABULARY = 2**24  # entries; the library aborts the process when it cannot reserve room for them
CHUNK = 4096  # sentences handed to the library at once: its results are far larger than the ids kept


class Tokenizer:
    """A WordPiece vocabulary and the rules to use it. Make one with `train` or `load`.

    pad_id, unk_id, cls_id, sep_id, mask_id: ids of the special tokens. vocab_size: number of ids.
    A special token written out in a sentence ("[MASK]") becomes that token, as it does for BERT.
    """

    def __init__(self, library: Library, source: str = "tokenizer"):
        """Wrap a `tokenizers.Tokenizer`; raises CheckpointError when a special token is missing."""
        missing = [token for token in SPECIAL_TOKENS if library.token_to_id(token) is None]
        if missing:
            raise CheckpointError(f"{source} lacks {', '.join(missing)}; expected the special tokens of BERT")
        self._library = library
        self.vocab_size = library.get_vocab_size(with_added_tokens=True)
        if set(library.get_vocab(with_added_tokens=True).values()) != set(range(self.vocab_size)):
            raise CheckpointError(f"{source} has gaps in its ids; expected 0 to {self.vocab_size - 1}")
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = map(library.token_to_id, SPECIAL_TOKENS)
        # A loaded file may ask for padding, for a length, or for nothing around the sentence.
        library.no_padding()
        library.no_truncation()
        library.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", self.cls_id), ("[SEP]", self.sep_id)]
        )
        library.decoder = decoders.WordPiece(prefix="##")  # for those who read tokenizer.json elsewhere

    @classmethod
    def train(cls, sentences: Iterable[str], vocab_size: int, progress: bool | None = None) -> "Tokenizer":
        """Learn a vocabulary of at most `vocab_size` tokens; the same sentences give the same vocabulary.

        Characters take part in order of frequency, as many as fit when each needs two entries (as the start
        of a word and inside one), at most 1,000. Words of more than 100 characters take no part: encoding makes
        them [UNK] whatever the vocabulary, and the time the trainer needs grows with the square of their length.
        progress: as for `load_corpus`.
        Raises InputError for a vocabulary too small for any word or above 2^24, or for sentences without words.
        """
        if vocab_size < len(SPECIAL_TOKENS) + 2:
            raise InputError(f"vocabulary size {vocab_size} is too small; expected at least {len(SPECIAL_TOKENS) + 2}")
        if vocab_size > LARGEST_VOCABULARY:
            raise InputError(f"vocabulary size {vocab_size} is too large; expected at most {LARGEST_VOCABULARY}")
        library = _bert_library({token: at for at, token in enumerate(SPECIAL_TOKENS)})
        words = Counter()
        for sentence in tqdm(sentences, desc="counting words", unit=" sentences", disable=hidden(progress)):
            normal = library.normalizer.normalize_str(_valid(sentence))
            pieces = library.pre_tokenizer.pre_tokenize_str(normal)
            words.update(word for word, _ in pieces if len(word) <= LONGEST_WORD)
        if not words:
            raise InputError(f"no words to learn a vocabulary from; expected words up to {LONGEST_WORD} characters")

        alphabet = _alphabet(words, limit=min(1000, (vocab_size - len(SPECIAL_TOKENS)) // 2))
        inside = {character for word in words for character in word[1:]}
        # The trainer numbers characters in the order of a hash map that differs from run to run, and breaks
        # ties by number. Listed as special tokens, in sorted order, they have their numbers before it starts.
        numbered = [*SPECIAL_TOKENS, *alphabet, *("##" + character for character in alphabet if character in inside)]
        trainer = trainers.WordPieceTrainer(
            vocab_size=vocab_size,
            special_tokens=numbered,
            initial_alphabet=alphabet,
            limit_alphabet=len(alphabet),
            show_progress=False,
        )
        # The words are normalised already; once more could change them ("\u0130" loses its dot in two steps).
        learner = Library(models.WordPiece(unk_token="[UNK]"))
        learner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        learner.train_from_iterator((f"{word} " * count for word, count in _repeated(words)), trainer)
        return cls(_bert_library(learner.get_vocab(with_added_tokens=True)))

    @classmethod
    def load(cls, folder: str | os.PathLike) -> "Tokenizer":
        """Read tokenizer.json, or else vocab.txt (with do_lower_case from tokenizer_config.json).

        Raises CheckpointError when neither is there, or the one read is damaged or not a BERT vocabulary.
        """
        folder = expanded(folder)
        whole, listed = folder / "tokenizer.json", folder / "vocab.txt"
        if whole.is_file():
            text = _read(whole)
            try:
                library = Library.from_str(text)
            except Exception as error:  # the library raises bare Exception
                raise CheckpointError(f"{whole} is not a tokenizer file: {error}") from None
            return cls(library, source=str(whole))
        if not listed.is_file():
            raise CheckpointError(f"{folder} holds no tokenizer; expected tokenizer.json or vocab.txt")
        tokens = [line.removesuffix("\r") for line in _read(listed).removesuffix("\n").split("\n")]
        if len(set(tokens)) < len(tokens):
            twice = Counter(tokens).most_common(1)[0][0]
            raise CheckpointError(f"{listed} lists {twice!r} more than once; expected distinct tokens")
        options = _read_options(folder / "tokenizer_config.json")
        return cls(_bert_library({token: at for at, token in enumerate(tokens)}, **options), source=str(listed))

    def save(self, folder: str | os.PathLike) -> None:
        """Write tokenizer.json (everything) and vocab.txt (one token a line, in order of id)."""
        vocabulary = self._library.get_vocab(with_added_tokens=True)
        listed = "".join(token + "\n" for token in sorted(vocabulary, key=vocabulary.get))
        for name, text in (("tokenizer.json", self._description()), ("vocab.txt", listed)):
            with atomic_write(expanded(folder) / name) as temporary:
                temporary.write_text(text, encoding="utf-8", newline="\n")

    def tobytes(self):
        """All that its ids depend on as bytes, for a fingerprint: the tokens, and how a text is brought to them."""
        return self._description().encode()

    def _description(self):
        return self._library.to_str(pretty=True)

    def encode(self, sentences: Sequence[str], max_length: int) -> tuple[list[np.ndarray], int]:
        """Ids of each sentence, [CLS] first and [SEP] last, cut to `max_length` tokens; and how many were cut.

        sentences: B strings; max_length: tokens, the two special ones included, at least 2.
        Returns B arrays int32 (T,), 2 <= T <= max_length, and the number of sentences that lost tokens.
        An empty sentence is [CLS] [SEP]. Raises InputError for one string in place of a sequence, for
        something that is not a string, and for max_length < 2.
        """
        if isinstance(sentences, str):
            raise InputError("encode got one string; expected a sequence of sentences")
        if max_length < 2:
            raise InputError(f"max_length {max_length} leaves no room for [CLS] and [SEP]; expected at least 2")
        rows, cut = [], 0
        for start in range(0, len(sentences), CHUNK):
            chunk = [_valid(s, start + at) for at, s in enumerate(sentences[start : start + CHUNK])]
            for encoding in self._library.encode_batch_fast(chunk):  # fast: without offsets into the text
                ids = np.array(encoding.ids[:max_length], dtype=np.int32)
                if len(encoding) > max_length:
                    ids[-1] = self.sep_id
                    cut += 1
                rows.append(ids)
        return rows, cut

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """The token of each id; raises InputError for an id outside the vocabulary."""
        ids = [int(i) for i in ids]
        if outside := [i for i in ids if not 0 <= i < self.vocab_size]:
            raise InputError(f"token id {outside[0]} is not in the vocabulary; expected 0 to {self.vocab_size - 1}")
        return [self._library.id_to_token(i) for i in ids]


def _bert_library(vocabulary: dict[str, int], lowercase: bool = True, strip_accents: bool | None = None) -> Library:
    library = Library(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=LONGEST_WORD))
    library.normalizer = normalizers.BertNormalizer(lowercase=lowercase, strip_accents=strip_accents)
    library.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    library.add_special_tokens([token for token in SPECIAL_TOKENS if token in vocabulary])
    return library


def _alphabet(words: Counter, limit: int) -> list[str]:
    """The `limit` most frequent characters that occur more than once, sorted."""
    seen = Counter()
    for word, count in words.items():
        for character in word:
            seen[character] += count
    often = sorted((c for c in seen if seen[c] > 1), key=lambda c: (-seen[c], c)) or sorted(seen)
    return sorted(often[:limit])


def _repeated(words: Counter) -> Iterable[tuple[str, int]]:
    # In pieces, so that no line of text grows to the size of the corpus.
    for word in sorted(words):
        for start in range(0, words[word], 1000):
            yield word, min(1000, words[word] - start)


def _valid(sentence: str, index: int | None = None) -> str:
    """The sentence with lone surrogates, which no UTF-8 can hold, replaced."""
    if not isinstance(sentence, str):
        place = "" if index is None else f" {index}"
        raise InputError(f"sentence{place} is a {type(sentence).__name__}; expected a string")
    return sentence.encode("utf-8", "replace").decode("utf-8")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from None


def _read_options(path: Path) -> dict:
    if not path.is_file():
        return {}
    try:
        config = json.loads(_read(path))
        return {"lowercase": bool(config.get("do_lower_case", True)), "strip_accents": config.get("strip_accents")}
    except (ValueError, AttributeError) as error:
        raise CheckpointError(f"{path} is not a JSON object: {error}") from None
