"""The sentences that stand-ins are made of: the project's own mini-sets, and phrases for languages that these lack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from crosslign.corpora.readers._lines import read_lines
from crosslign.corpora.written import NLI_COLUMNS, STS_COLUMNS, files_by_lang, read_aligned
from crosslign.errors import InputError
from crosslign.languages import normalise, scripts_of

PHRASES = "phrases.tsv"
NUMBER = "{n}"
PIVOT = "en"
ALPHABETS = {
    "Arabic": "ابتثجحخدذرزسشصضطظعغفقكلمنه",
    "Armenian": "աբգդեզէըթժիլխծկհձղճմյնշոչպ",
    "Bengali": "অআইঈউঊএঐওঔকখগঘঙচছজঝঞটঠডঢণত",
    "Cyrillic": "абвгдежзийклмнопрстуфхцчшщ",
    "Devanagari": "अआइईउऊएऐओऔकखगघङचछजझञटठडढणत",
    "Georgian": "აბგდევზთიკლმნოპჟრსტუფქღყშჩ",
    "Greek": "αβγδεζηθικλμνξοπρστυφχψωάέ",
    "Gurmukhi": "ਅਆਇਈਉਊਏਐਓਔਕਖਗਘਙਚਛਜਝਞਟਠਡਢਣਤ",
    "Han": "山水火木金土日月人口手目耳心門車馬魚鳥牛羊竹米雨田石",
    "Hangul": "가나다라마바사아자차카타파하거너더러머버서어저처커터",
    "Hebrew": "אבגדהוזחטיכלמנסעפצקרשתםןףץ",
    "Latin": "bcdefghijklmnopqrstuvwxyza",
    "Khmer": "កខគឃងចឆជឈញដឋឌឍណតថទធនបផពភមយ",
    "Lao": "ກຂຄງຈຊຍດຕຖທນບປຜຝພຟມຢຣລວສຫອ",
    "Malayalam": "അആഇഈഉഊഎഏഐഒഓഔകഖഗഘങചഛജഝഞടഠഡഢ",
    "Myanmar": "ကခဂဃငစဆဇဈညဋဌဍဎဏတထဒဓနပဖဗဘမယ",
    "Sinhala": "අආඇඈඉඊඋඌඑඒඔඕකඛගඝඞචඡජඣඤටඨඩඪ",
    "Tamil": "அஆஇஈஉஊஎஏஐஒஓஔகஙசஞடணதநபமயரலவ",
    "Telugu": "అఆఇఈఉఊఎఏఐఒఓఔకఖగఘఙచఛజఝఞటఠడఢ",
    "Thai": "กขคฆงจฉชซฌญดตถทธนบปผฝพฟมยร",
}  # fmt: skip
"""Twenty-six letters of each script, for made-up words."""


class Sentence(dict[str, str]):
    """One sentence by language.

    Attributes:
        role: premise, entailed, contradicting, first or second; empty where nobody said.
        score: grade of the pair (0 to 5) that a first or second sentence stands in.
        phrase: a phrase by language, in more languages than the sentence; another meaning, but the same in all of these.
    """

    def __init__(self, texts: Mapping[str, str], role: str = "", score: float = 0.0, phrase: Mapping[str, str] | None = None) -> None:
        super().__init__(texts)
        self.role, self.score, self.phrase = role, score, dict(phrase or {})


def load_sentences(folder: Path) -> list[Sentence]:
    """Return the aligned sentences of all mini-sets in a folder, {language: sentence}, in a fixed order.

    NLI first (premise, entailed, contradicting of each item), then STS (first, second); within each, the order of
    the alphabetically first language's file. These feed the stand-ins for real data. Where the folder has
    `phrases.tsv`, the i-th sentence carries a phrase with the number i + 2.
    """
    files = {path.name: path for path in sorted(Path(folder).glob("*.tsv"))}
    phrases = _phrases(files[PHRASES]) if PHRASES in files else []
    sentences: list[Sentence] = []
    for kind, columns, texts in (("nli", NLI_COLUMNS, NLI_COLUMNS[1:]), ("sts", STS_COLUMNS, STS_COLUMNS[2:])):
        aligned = read_aligned(files_by_lang(files, kind, [], str(folder)), columns)
        for item, (_, first) in next(iter(aligned.values())).items():
            for column in texts:
                row = {lang: items[item][1][column] for lang, items in aligned.items()}
                sentences.append(Sentence(row, column, float(first.get("score", 0)), _numbered(phrases, len(sentences))))
    return sentences


def _numbered(phrases: Sequence[Mapping[str, str]], number: int) -> dict[str, str]:
    """Return the phrase of the sentence of a number, with a number in its place: no two are equal."""
    return {lang: text.replace(NUMBER, str(number + 2)) for lang, text in phrases[number % len(phrases)].items()} if phrases else {}


def _phrases(path: Path) -> list[dict[str, str]]:
    """Return the phrases by language; each has one place for a number.

    Raises:
        InputError: a line with another number of columns, or a phrase without that place.
    """
    langs: list[str] = []
    phrases: list[dict[str, str]] = []
    for number, line in read_lines(path):
        fields = line.split("\t")
        if not langs:
            langs = fields
            continue
        if len(fields) != len(langs) or any(text.count(NUMBER) != 1 for text in fields):
            raise InputError(f"a line has {len(langs)} phrases, each with one {NUMBER}", where=f"{path}:{number}")
        phrases.append(dict(zip(langs, fields, strict=True)))
    return phrases


def made_up(text: str, lang: str) -> str:
    """Return a text whose letters are those of a language's script: what stands for a language that nobody wrote anything in."""
    if normalise(lang) == PIVOT:
        return text
    alphabet = ALPHABETS[scripts_of(lang)[0]]
    return "".join(alphabet[(ord(letter) - 97) % 26] if (letter := character.lower()).isalpha() else character for character in text)


def text_in(sentence: Mapping[str, str], lang: str) -> str:
    """Return a sentence in a language: its own text, else the phrase that goes with it, else made-up words in the right script."""
    code = normalise(lang)
    phrase: Mapping[str, str] = getattr(sentence, "phrase", {})
    return sentence.get(code) or phrase.get(code) or made_up(sentence.get(PIVOT) or next(iter(sentence.values()), ""), code)


def phrase_in(sentence: Mapping[str, str], lang: str) -> str:
    """Return the phrase that goes with a sentence, in a language: all languages say the same; made up where it has none."""
    phrase: Mapping[str, str] = getattr(sentence, "phrase", {}) or sentence
    code = normalise(lang)
    return phrase.get(code) or made_up(phrase.get(PIVOT) or next(iter(phrase.values())), code)


def pair_in(sentence: Mapping[str, str], first: str, second: str) -> tuple[str, str]:
    """Return a sentence in two languages, of one meaning: its own texts where it has both, else the phrase that goes with it."""
    codes = normalise(first), normalise(second)
    if all(code in sentence for code in codes):
        return sentence[codes[0]], sentence[codes[1]]
    return phrase_in(sentence, first), phrase_in(sentence, second)


def needed(sentences: Sequence[Mapping[str, str]], name: str) -> None:
    """Check that there are sentences.

    Raises:
        InputError: there are none.
    """
    if not sentences:
        raise InputError("a stand-in needs sentences", where=name)


@dataclass(frozen=True)
class Triplet:
    """Premise, entailed and contradicting sentence."""

    premise: Mapping[str, str]
    entailed: Mapping[str, str]
    contradicting: Mapping[str, str]

    def pairs(self, following: Triplet) -> Iterator[tuple[str, Mapping[str, str], Mapping[str, str]]]:
        """Yield (label, premise, hypothesis) of the three classes; what the next triplet's premise says is neutral."""
        yield "entailment", self.premise, self.entailed
        yield "neutral", self.premise, following.premise
        yield "contradiction", self.premise, self.contradicting


def triplets_of(sentences: Sequence[Mapping[str, str]]) -> list[Triplet]:
    """Return the triplets among sentences, by their roles; three in a row where no sentence has a role.

    Raises:
        InputError: there is none.
    """
    roles = [getattr(sentence, "role", "") for sentence in sentences]
    usable = [s for s, role in zip(sentences, roles, strict=True) if role in NLI_COLUMNS] if any(roles) else list(sentences)
    found = [Triplet(usable[at], usable[at + 1], usable[at + 2]) for at in range(0, len(usable) - 2, 3)]
    if not found:
        raise InputError("a stand-in needs sentences", why="three make a triplet")
    return found
