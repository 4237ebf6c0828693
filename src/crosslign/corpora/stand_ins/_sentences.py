"""The sentences that synthetic data are made of: the project's own mini-sets, and phrases for languages that these lack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from crosslign.console import number_of
from crosslign.corpora.readers._lines import read_lines
from crosslign.corpora.written import NLI_COLUMNS, STS_COLUMNS, files_by_lang, read_aligned
from crosslign.errors import InputError
from crosslign.languages import counts_characters, normalise, scripts_of

PHRASES = "phrases.tsv"
NUMBER = "{n}"
PIVOT = "en"
ALPHABETS = {
    "Arabic": "ابتثجحخدذرزسشصضطظعغفقكلمنه",
    "Armenian": "աբգդեզէըթժիլխծկհձղճմյնշոչպ",
    "Bengali": "অআইঈউঊএঐওঔকখগঘঙচছজঝঞটঠডঢণত",
    "Cyrillic": "абвгдежзийклмнопрстуфхцчшщ",
    "Devanagari": "अआइईउऊएऐओऔकखगघङचछजझञटठडढणत",
    "Ethiopic": "ሀለሐመሠረሰሸቀበተቸኀነኘአከኸወዐዘዠየደጀገ",
    "Georgian": "აბგდევზთიკლმნოპჟრსტუფქღყშჩ",
    "Greek": "αβγδεζηθικλμνξοπρστυφχψωάέ",
    "Gujarati": "અઆઇઈઉઊએઐઓઔકખગઘઙચછજઝઞટઠડઢણત",
    "Gurmukhi": "ਅਆਇਈਉਊਏਐਓਔਕਖਗਘਙਚਛਜਝਞਟਠਡਢਣਤ",
    "Han": "山水火木金土日月人口手目耳心門車馬魚鳥牛羊竹米雨田石",
    "Hangul": "가나다라마바사아자차카타파하거너더러머버서어저처커터",
    "Hebrew": "אבגדהוזחטיכלמנסעפצקרשתםןףץ",
    "Latin": "bcdefghijklmnopqrstuvwxyza",
    "Kannada": "ಅಆಇಈಉಊಎಏಐಒಓಔಕಖಗಘಙಚಛಜಝಞಟಠಡಢ",
    "Khmer": "កខគឃងចឆជឈញដឋឌឍណតថទធនបផពភមយ",
    "Lao": "ກຂຄງຈຊຍດຕຖທນບປຜຝພຟມຢຣລວສຫອ",
    "Malayalam": "അആഇഈഉഊഎഏഐഒഓഔകഖഗഘങചഛജഝഞടഠഡഢ",
    "Myanmar": "ကခဂဃငစဆဇဈညဋဌဍဎဏတထဒဓနပဖဗဘမယ",
    "Oriya": "ଅଆଇଈଉଊଏଐଓଔକଖଗଘଙଚଛଜଝଞଟଠଡଢଣତ",
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
        phrases: phrases by language, in more languages than the sentence; each says the same in all its languages, and
            a later one has more of them.
    """

    def __init__(self, texts: Mapping[str, str], role: str = "", score: float = 0.0, phrases: Sequence[Mapping[str, str]] = ()) -> None:
        super().__init__(texts)
        self.role, self.score, self.phrases = role, score, phrases


def load_sentences(folder: Path) -> list[Sentence]:
    """Return the aligned sentences of all mini-sets in a folder, {language: sentence}, in a fixed order.

    NLI first (premise, entailed, contradicting of each item), then STS (first, second); within each, the order of
    the alphabetically first language's file. These feed the synthetic data. Where the folder has
    `phrases.tsv`, the i-th sentence carries phrases with the number i + 2.
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


def _numbered(phrases: Sequence[Mapping[str, str]], number: int) -> list[dict[str, str]]:
    """Return the phrases of the sentence of a number, that number in their place: one of all phrases, one of those in all languages."""
    if not phrases:
        return []
    fewest = sum(len(phrase) == len(phrases[0]) for phrase in phrases)
    chosen = phrases[number % len(phrases)], phrases[number % fewest]
    return [{lang: text.replace(NUMBER, str(number + 2)) for lang, text in phrase.items()} for phrase in chosen]


def _phrases(path: Path) -> list[dict[str, str]]:
    """Return the phrases by language; each has one place for a number. Fields may be empty; the first phrase is in all languages.

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
        if len(fields) != len(langs) or any(text and text.count(NUMBER) != 1 for text in fields) or (not phrases and not all(fields)):
            raise InputError(f"a line must have {number_of(len(langs), 'phrase')}, each with one {NUMBER}", where=f"{path}:{number}")
        phrases.append({lang: text for lang, text in zip(langs, fields, strict=True) if text})
    return phrases


def made_up(text: str, lang: str) -> str:
    """Return a text whose letters are those of a language's script: what stands for a language that nobody wrote anything in."""
    if normalise(lang) == PIVOT:
        return text
    alphabet = ALPHABETS[scripts_of(lang)[0]]
    words = [word[:2] for word in text.split()] if counts_characters(lang) else [text]
    return "".join(
        alphabet[(ord(letter) - 97) % 26] if (letter := character.lower()).isalpha() else character for character in "".join(words)
    )


def phrases_of(sentence: Mapping[str, str]) -> Sequence[Mapping[str, str]]:
    """Return the phrases that go with a sentence; the sentence itself where it has none."""
    return getattr(sentence, "phrases", ()) or (sentence,)


def text_in(sentence: Mapping[str, str], lang: str) -> str:
    """Return a sentence in a language: its own text, else a phrase that goes with it, else made-up words in the right script."""
    return sentence.get(normalise(lang)) or phrase_in(sentence, lang)


def phrase_in(sentence: Mapping[str, str], lang: str) -> str:
    """Return the phrase that goes with a sentence, in a language: the first that there is, else made-up words."""
    code = normalise(lang)
    phrases = phrases_of(sentence)
    found = next((phrase[code] for phrase in phrases if code in phrase), "")
    return found or made_up(phrases[0].get(PIVOT) or next(iter(phrases[0].values())), code)


def pair_in(sentence: Mapping[str, str], first: str, second: str) -> tuple[str, str]:
    """Return a sentence in two languages, of one meaning: its own texts where it has both, else a phrase that has both, else made up."""
    codes = normalise(first), normalise(second)
    for texts in (sentence, *phrases_of(sentence)):
        if all(code in texts for code in codes):
            return texts[codes[0]], texts[codes[1]]
    known = phrases_of(sentence)[0]
    pivot = known.get(PIVOT) or next(iter(known.values()))
    left, right = (known.get(code) or made_up(pivot, code) for code in codes)
    return left, right


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
        raise InputError("too few sentences for synthetic data", why="a triplet needs three")
    return found


@dataclass(frozen=True)
class GradedPair:
    """Two sentences and how alike they are, 0 to 5."""

    first: Mapping[str, str]
    second: Mapping[str, str]
    grade: float


def graded_of(sentences: Sequence[Mapping[str, str]]) -> list[GradedPair]:
    """Return the graded pairs among sentences; where there are none, what follows from a premise (4) and what contradicts it (1).

    Raises:
        InputError: there is neither.
    """
    graded = [s for s in sentences if getattr(s, "role", "") in ("first", "second")]
    pairs = [GradedPair(a, b, getattr(a, "score", 0.0)) for a, b in zip(graded[::2], graded[1::2], strict=False)]
    if pairs:
        return pairs
    return [GradedPair(t.premise, o, grade) for t in triplets_of(sentences) for o, grade in ((t.entailed, 4.0), (t.contradicting, 1.0))]
