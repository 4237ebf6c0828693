"""A tiny random encoder, and small training sets in its languages."""

from __future__ import annotations

from copy import deepcopy

import pyarrow as pa
import pytest

from crosslign.files import write_rows

SENTENCES = [
    ("The dog sleeps under the old table.", "Der Hund schläft unter dem alten Tisch."),
    ("We bought fresh bread this morning.", "Wir haben heute Morgen frisches Brot gekauft."),
    ("The train to the city is late again.", "Der Zug in die Stadt hat wieder Verspätung."),
    ("She writes a letter to her brother.", "Sie schreibt ihrem Bruder einen Brief."),
    ("It rained all night.", "Es hat die ganze Nacht geregnet."),
    ("The children play football behind the school after lunch.", "Die Kinder spielen nach dem Essen hinter der Schule Fußball."),
    ("Please close the window.", "Bitte schließe das Fenster."),
    ("My grandmother grows tomatoes and beans.", "Meine Großmutter baut Tomaten und Bohnen an."),
    ("The museum opens at ten.", "Das Museum öffnet um zehn."),
    ("He forgot his keys in the office.", "Er hat seine Schlüssel im Büro vergessen."),
    ("Two birds sat on the roof of the house.", "Zwei Vögel saßen auf dem Dach des Hauses."),
    ("The soup needs a little more salt.", "Die Suppe braucht etwas mehr Salz."),
    ("Yes.", "Ja."),
    ("Nobody answered the telephone.", "Niemand ging ans Telefon."),
    ("The river is deep and very cold here.", "Der Fluss ist hier tief und sehr kalt."),
    ("I have read this book twice.", "Dieses Buch habe ich zweimal gelesen."),
    ("Our neighbours are painting their fence green.", "Unsere Nachbarn streichen ihren Zaun grün."),
    ("The meeting was moved to Friday.", "Die Sitzung wurde auf Freitag verschoben."),
    ("A small cat waited in front of the door for an hour.", "Eine kleine Katze wartete eine Stunde vor der Tür."),
    ("The bridge was built a hundred years ago.", "Die Brücke wurde vor hundert Jahren gebaut."),
]
"""English sentences and their German translations, written for these tests."""

TINY = {"architecture": "bert", "layers": 2, "hidden": 32, "heads": 2, "intermediate": 64, "vocabulary": 400, "seed": 0}


@pytest.fixture(scope="session")
def sentence_pairs():
    """Twenty English sentences with their German translations."""
    return SENTENCES


@pytest.fixture(scope="session")
def sentence_file(tmp_path_factory):
    """The same, as a tab-separated file."""
    path = tmp_path_factory.mktemp("text") / "sentences.tsv"
    path.write_text("".join(f"{en}\t{de}\n" for en, de in SENTENCES), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory, sentence_file):
    """Folder of a prepared encoder, `main/` inside: a BERT of two blocks, 32 dimensions, random weights."""
    from crosslign.encoders.prepare import prepare_encoder

    out = tmp_path_factory.mktemp("encoders") / "tiny"
    prepare_encoder("tiny", {"construct": TINY}, {"sentences.tsv": sentence_file}, out)
    return out


@pytest.fixture(scope="session")
def tiny_loaded(tiny_encoder):
    """That encoder, which no test changes: to load it takes five times as long as to copy it."""
    from crosslign.encoders.model import Model

    return Model.load({"main": tiny_encoder / "main"})


@pytest.fixture
def tiny_model(tiny_loaded):
    """That encoder, as if it were loaded anew."""
    return deepcopy(tiny_loaded)


@pytest.fixture(scope="session")
def pairs_file(tmp_path_factory):
    """Training set of shape `pairs`."""
    ids = [f"sentences:sentences.tsv:{line}" for line in range(1, len(SENTENCES) + 1)]
    columns = {"id": ids, "rows": [[i] for i in ids], "a_text": [en for en, _ in SENTENCES], "a_lang": ["en"] * len(ids)}
    path = tmp_path_factory.mktemp("examples") / "pairs.parquet"
    write_rows(path, pa.table({**columns, "b_text": [de for _, de in SENTENCES], "b_lang": ["de"] * len(ids)}), "pairs")
    return path


@pytest.fixture(scope="session")
def groups_file(tmp_path_factory):
    """Training set of shape `groups`: translations of one sentence."""
    ids = [f"groups:{i}" for i in range(len(SENTENCES))]
    path = tmp_path_factory.mktemp("examples") / "groups.parquet"
    table = pa.table({"id": ids, "rows": [[i] for i in ids], "texts": [list(p) for p in SENTENCES], "langs": [["en", "de"]] * len(ids)})
    write_rows(path, table, "groups")
    return path
