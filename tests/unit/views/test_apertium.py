"""Apertium: chains, lost lines, crashes; the engine itself where it is installed."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace

import pytest
from apertium_pairs import needs_apertium

from crosslign.errors import InputError, ResourceError
from crosslign.views import TRANSLATORS, TranslatorSetting
from crosslign.views.translators import apertium

MODES = {("en", "es"): "eng-spa", ("es", "fr"): "es-fr", ("es", "pt"): "es-pt", ("fr", "es"): "fr-es", ("pt", "fr"): "pt-fr"}


def translator(targets=("es",), langs=("en",), **options):
    return TRANSLATORS.get("apertium")(TranslatorSetting("v", langs, targets, {}), **options)


def test_the_shortest_chain_is_found():
    assert apertium.shortest_chain(MODES, "en", "es") == ["eng-spa"]
    assert apertium.shortest_chain(MODES, "en", "fr") == ["eng-spa", "es-fr"]
    assert apertium.shortest_chain(MODES, "fr", "pt") == ["fr-es", "es-pt"]
    assert apertium.shortest_chain(MODES, "en", "de") is None


def test_a_line_that_crashes_is_found_and_left_out(monkeypatch):
    calls = []

    def run(command, **options):
        lines = options["input"].split("\n\n")[:-1]
        calls.append(len(lines))
        kept = [line.upper() for line in lines]
        if "bad" in lines:  # the engine stops there, some pairs with a good exit status
            kept = kept[: lines.index("bad")]
        return SimpleNamespace(stdout="".join(f" {line}\n\n" for line in kept), stderr="", returncode=0)

    monkeypatch.setattr(apertium.subprocess, "run", run)
    lines = [f"line {n}" for n in range(9)]
    lines[6] = "bad"
    assert apertium._translate("eng-spa", lines) == [None if line == "bad" else line.upper() for line in lines]
    assert calls[0] == 9
    assert max(calls[1:]) < 9


def test_words_that_move_over_a_line_end_are_not_believed(monkeypatch):
    answers = iter(["a b\nc\n\n\n", "A\n\n", "B\n\n"])
    monkeypatch.setattr(apertium.subprocess, "run", lambda *a, **k: SimpleNamespace(stdout=next(answers), stderr="", returncode=0))
    assert apertium._translate("eng-spa", ["a", "b"]) == ["A", "B"]


def test_a_call_that_hangs_is_as_a_crash(monkeypatch):
    def run(*args, **options):
        raise subprocess.TimeoutExpired("apertium", 1)

    monkeypatch.setattr(apertium.subprocess, "run", run)
    assert apertium._translate("eng-spa", ["a"]) == [None]


@pytest.fixture
def engine(command):
    """An Apertium of three modes: upper case, a mark of its own for the next, and one that always fails."""
    command(
        "apertium",
        """case "$*" in
-l) printf 'eng-spa\\nes-fr\\neng-cat\\nfr-es\\n' ;;
-V) echo 1.0 ;;
*eng-spa) tr a-z A-Z ;;
*es-fr) sed 's/[A-Z]$/&?/' ;;
*) cat > /dev/null; echo "no such file: fr-es.bin" >&2; exit 1 ;;
esac""",
    )


def test_chains_that_are_named_are_gone_through(engine):
    assert translator(("fr",), chains={"en-fr": ["eng-spa", "es-fr"]}).translate(["a b", "c"], "en", "fr") == ["A B?", "C?"]
    assert translator(("ca",), chains={"en-ca": ["eng-cat"]}).identity["chains"] == {"en-ca": ["eng-cat"]}


@pytest.mark.parametrize(
    ("chain", "said"),
    [
        (["eng-spa"], r"v: .*chain .*'es', .*'fr'"),
        (["es-fr"], r"v: .*'es-fr' .*'en'"),
        (["eng-spa", "fr-es"], r"v: .*'fr-es' .*'es'"),
        (["eng-sp"], r"v: .*'eng-sp'.*eng-spa"),
    ],
)
def test_a_chain_that_leads_elsewhere_is_refused(engine, chain, said):
    with pytest.raises(InputError, match=said):
        translator(("fr",), chains={"en-fr": chain})


def test_a_chain_for_a_pair_that_nobody_translates_is_refused(engine):
    with pytest.raises(InputError, match=r"v: `chains` .*'en_fr', .*en-fr"):
        translator(("fr",), chains={"en_fr": ["eng-spa", "es-fr"]})


def test_a_mode_that_always_fails_is_told_at_its_first_sentence(engine):
    made = translator(("es",), langs=("fr",))
    with pytest.raises(ResourceError, match=r"'fr-es' .*exit status 1.*fr-es\.bin"):
        made.translate(["bonjour"] * 3, "fr", "es")


def test_without_apertium_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(apertium.shutil, "which", lambda name: None)
    with pytest.raises(ResourceError, match="apt-get install"):
        translator()


@needs_apertium
def test_the_engine_itself():
    made = translator(("es", "fr"), chains={"en-fr": ["eng-spa", "es-fr"]})
    texts = ["I live in Madrid.", "Why not? Well... yes", "The cat drinks water", "100 % <b> & [x] ^a$ @ ~ \\ / done", "…"]
    spanish = made.translate(texts, "en", "es")
    assert spanish[0] == "Vivo en Madrid."
    assert len(spanish) == 5
    assert all(text and "\n" not in text for text in spanish)
    french = made.translate(texts[:3], "en", "fr")
    assert french[0].endswith("Madrid.")
    assert made.translate(["The cat drinks water"], "en", "es") == [spanish[2]]  # alone or among others
    assert made.identity["modes"].keys() == {"eng-spa", "es-fr"}


@needs_apertium
def test_a_language_that_no_pair_reaches():
    with pytest.raises(InputError, match=r"v: .*'en' .*'zh'; "):
        translator(("zh",))
