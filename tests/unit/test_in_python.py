"""The public names: cheap to import, documented by examples that run, and equal to what stands behind them."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from sentence_transformers import SentenceTransformer

import crosslign
from crosslign.cli.main import main
from crosslign.corpora.evaluation import Evaluation
from crosslign.errors import InputError, NetworkError, ResourceError
from crosslign.paths import Paths

PAGE = Path(__file__).resolve().parents[2] / "docs" / "in-python.md"
QUICK = ["scale=quick"]


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A cache that the tests of this file share, and a folder whose configuration says quick."""
    folder = tmp_path_factory.mktemp("python")
    (folder / "config").mkdir()
    (folder / "config" / "config.yaml").write_text("scale: quick\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        patch.setenv("CROSSLIGN_OFFLINE", "1")
        patch.chdir(folder)
        yield folder


@pytest.fixture(scope="module")
def encoder(cache):
    return crosslign.encoder("me5_small")


def test_to_import_the_library_loads_neither_torch_nor_pandas_nor_the_command_line():
    program = "import sys, crosslign; print(json.dumps([n for n in ('torch', 'pandas', 'numpy', 'crosslign.cli') if n in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", f"import json; {program}"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_each_public_name_stands_on_the_page_and_has_a_docstring():
    page = PAGE.read_text(encoding="utf-8")
    assert not [name for name in crosslign.__all__ if name != "Encoder" and f"crosslign.{name}" not in page]
    assert not [name for name in crosslign.__all__ if not getattr(crosslign, name).__doc__]
    assert set(dir(crosslign)) == {*crosslign.__all__, "__version__"}
    with pytest.raises(AttributeError, match="no attribute 'encode'"):
        crosslign.encode  # noqa: B018


def test_the_examples_of_the_page_run_one_after_the_other(encoder):
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert len(blocks) == 6
    names = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    assert names["found"]["main"].sum() == 1
    assert "did you mean 'me5_small'" in str(_raised(crosslign.encoder, "me5_smal"))


def _raised(function, *words, **options):
    with pytest.raises(crosslign.CrosslignError) as found:
        function(*words, **options)
    return found.value


def test_a_list_is_mined_as_a_file_of_the_same_lines(cache, encoder, sentence_pairs, capsys):
    english, german = ([*side, "", side[0]] for side in map(list, zip(*sentence_pairs, strict=True)))
    german = german[::-1]
    for name, lines in (("a.txt", english), ("b.txt", german)):
        (cache / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert main(["mine", "a.txt", "b.txt", "--allow-tiny", "-o", "own.tsv"]) == 0
    capsys.readouterr()
    rows = [line.split("\t") for line in (cache / "own.tsv").read_text(encoding="utf-8").splitlines()]
    column = {name: at for at, name in enumerate(rows[0])}
    pairs = crosslign.mine(english, german, encoder)
    assert len(pairs) == len(rows) - 1 > 5
    assert pairs["source"].tolist() == [int(row[column["source_line"]]) - 1 for row in rows[1:]]
    assert pairs["target_text"].tolist() == [row[column["target_text"]] for row in rows[1:]]
    np.testing.assert_allclose(pairs["score"], [float(row[column["score"]]) for row in rows[1:]], atol=1e-3)
    assert [english[place].strip() for place in pairs["source"]] == pairs["source_text"].tolist()
    assert len(crosslign.mine(english, german, encoder, threshold=float(pairs["score"][2]))) == 3


@pytest.mark.parametrize("margin", ["ratio", "distance", "absolute"])
def test_margin_scores_are_those_of_the_definition(margin):
    draw = np.random.default_rng(3)
    x, y = draw.normal(size=(7, 12)).astype(np.float32), draw.normal(size=(9, 12)).astype(np.float32)
    found = crosslign.margin_scores(x, y, k=3, margin=margin)
    unit = [side.astype(np.float64) / np.linalg.norm(side.astype(np.float64), axis=1, keepdims=True) for side in (x, y)]
    cosines = unit[0] @ unit[1].T
    forward, backward = (np.sort(one, 1)[:, -3:].mean(1) for one in (cosines, cosines.T))
    means = (forward[:, None] + backward[None, :]) / 2
    wanted = {"ratio": cosines / means, "distance": cosines - means, "absolute": cosines}[margin]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


class _Fixed:
    """An encoder of others: a vector a sentence, drawn from its letters."""

    def encode(self, sentences):
        return np.stack([np.random.default_rng(list(text.encode())).normal(size=16) for text in sentences])


def test_scores_of_mine_are_entries_of_the_margin_scores():
    left, right = [f"a{number}" for number in range(30)], [f"b{number}" for number in range(20)]
    pairs = crosslign.mine(left, right, _Fixed(), retrieval="fwd")
    matrix = crosslign.margin_scores(_Fixed().encode(left), _Fixed().encode(right))
    assert pairs["score"].tolist() == [matrix[row] for row in zip(pairs["source"], pairs["target"], strict=True)]


def test_an_evaluation_of_anybodys_encoder_has_values_and_intervals(cache):
    """Against the correlation of SciPy, over pairs that are looked up one by one."""
    found = crosslign.evaluate(_Fixed(), ["sts17"], config=QUICK)
    paths = Paths(cache / "cache" / "crosslign", "quick", stand_in=True)
    corpus = Evaluation.read({part: paths.evaluation("sts17", part) for part in ("texts", "items", "gold")})
    texts = dict(zip(corpus.texts["text_id"].to_pylist(), corpus.texts["text"].to_pylist(), strict=True))
    rows = found[(found["metric"] == "spearman") & found["subset"].isin(["en-en", "es-es"])]
    assert len(rows) == 2
    for row in rows.itertuples():
        items = {item["item_id"]: texts[item["text_id"]] for item in corpus.items.to_pylist() if item["subset"] == row.subset}
        gold = [line for line in corpus.gold.to_pylist() if line["subset"] == row.subset]
        x, y = (_Fixed().encode([items[line[side]] for line in gold]) for side in ("left", "right"))
        cosines = (x * y).sum(1) / np.linalg.norm(x, axis=1) / np.linalg.norm(y, axis=1)
        assert row.value == pytest.approx(spearmanr(cosines, [line["score"] for line in gold]).statistic, abs=1e-6)
        assert row.ci_low < row.value < row.ci_high
    assert found["run"].unique().tolist() == ["_Fixed"]
    assert found["main"].sum() == 1


def test_a_folder_of_sentence_transformers_is_read_as_it_says(cache, tiny_encoder, tmp_path, sentence_pairs):
    from crosslign.encoders.model import Member

    readout = {"pooling": "cls", "layer": 1, "normalise": True, "max_length": 16, "prefix": "query: "}
    Member.load(tiny_encoder / "main").save(tmp_path / "one", readout)
    texts = [text for pair in sentence_pairs for text in pair]
    ours = crosslign.encoder(tmp_path / "one").encode(texts)
    theirs = SentenceTransformer(str(tmp_path / "one"), device="cpu").encode(texts)
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
    changed = crosslign.encoder(tmp_path / "one", readout={"prefix": "passage: "})
    assert changed.readout == {**crosslign.encoder(tmp_path / "one").readout, "prefix": "passage: "}
    Member.load(tiny_encoder / "main").save(tmp_path / "run" / "last" / "de", readout)
    assert list(crosslign.encoder(tmp_path / "run" / "last").model.members) == ["de"]


class _Gives:
    """An encoder that gives one matrix, whatever it is asked for."""

    def __init__(self, matrix):
        self.matrix = matrix

    def encode(self, sentences):
        return self.matrix


@pytest.mark.parametrize("texts", [None, 3, b"a", ["a", None], [b"a"], [["a", "b"]], ["a", float("nan")], {"a": 1}, ["\ud83d"]])
def test_what_is_no_list_of_texts_is_refused(texts, encoder):
    for call in (encoder.encode, lambda given: crosslign.mine(given, ["a"], encoder), lambda given: crosslign.mine(["a"], given, encoder)):
        with pytest.raises(InputError, match=r"item \d+ .*text|list of texts"):
            call(texts)


@pytest.mark.parametrize(
    ("setting", "value"),
    [("precision", "float32"), ("max_length", 0), ("max_length", "3"), ("pooling", "sum"), ("normalise", "yes"), ("prefix", None)],
)
def test_values_that_no_embedding_setting_has_are_refused(setting, value, encoder):
    for call in (lambda: encoder.encode(["a"], **{setting: value}), lambda: crosslign.encoder("me5_small", readout={setting: value})):
        with pytest.raises(InputError, match=f": {setting}: "):
            call()


def test_values_of_numpy_and_tuples_are_those_of_python(encoder):
    for langs in (("en", "de"), np.array(["en", "de"]), iter(["en", "de"])):
        assert encoder.encode(["a", "b"], lang=langs).shape[0] == 2
    assert np.array_equal(encoder.encode(("a b c d",), max_length=np.int64(3)), encoder.encode(np.array(["a b c d"]), max_length=3))
    with pytest.raises(InputError, match=r"temperature: -0\.1"):
        crosslign.objective("infonce", temperature=np.float64(-0.1))
    with pytest.raises(InputError, match=r"temperature: .*nan"):
        crosslign.objective("infonce", temperature=float("nan"))


def test_as_many_vectors_as_sentences_are_asked_for(cache):
    for rows in (1, 3):
        with pytest.raises(InputError, match=rf"\b{rows} vectors? .*\b2 "):
            crosslign.mine(["a", "b"], ["c", "d"], _Gives(np.eye(3)[:rows]))
    with pytest.raises(InputError, match=r"\b3 vectors "):
        crosslign.evaluate(_Gives(np.eye(3)), ["sts17"], config=QUICK)
    with pytest.raises(InputError, match="matrix"):
        crosslign.mine(["a", "b"], ["c", "d"], _Gives([[1.0, 2.0], [1.0]]))


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_tensors_of_any_kind_are_matrices(kind):
    x, y = (torch.from_numpy(np.random.default_rng(seed).normal(size=(5, 8))).to(kind).requires_grad_() for seed in (1, 2))
    wanted = crosslign.margin_scores(*(one.detach().double().numpy() for one in (x, y)))
    np.testing.assert_allclose(crosslign.margin_scores(x, y), wanted, rtol=1e-6)


@pytest.mark.parametrize("k", [0, 1.5, "4", None, True])
def test_the_number_of_neighbours_is_a_whole_number(k):
    for call in (lambda: crosslign.margin_scores(np.eye(2), np.eye(2), k=k), lambda: crosslign.mine(["a"], ["b"], _Fixed(), k=k)):
        with pytest.raises(InputError, match=r"crosslign\.\w+: k: (.*integer|0 .* 1$)"):
            call()
    assert crosslign.margin_scores(np.eye(2), np.eye(2), k=np.int64(2)).shape == (2, 2)


def test_a_folder_of_scores_is_all_of_them(cache, encoder):
    record = {"eval": "t", "metric": "accuracy", "subset": "avg", "value": 0.5}
    for name in ("b", "a"):
        folder = cache / "kept" / name
        folder.mkdir(parents=True)
        (folder / "t.json").write_text(json.dumps({"run_id": name, "records": [record]}))
    assert crosslign.scores(cache / "kept")["run"].tolist() == ["a", "b"]


def test_scores_of_what_is_not_there_or_is_no_score_file_are_refused(cache, tmp_path):
    (tmp_path / "x.txt").write_text("0.5\n")
    for given in ("/nope/dir", [tmp_path / "none.txt"], [tmp_path, "/nope/dir"]):
        with pytest.raises(InputError, match=r"(/nope/dir|none\.txt): .*file"):
            crosslign.scores(given)
    with pytest.raises(InputError, match=r"x\.txt"):
        crosslign.scores([tmp_path / "x.txt"])
    with pytest.raises(InputError, match=r"crosslign\.scores: .*files; .*int"):
        crosslign.scores([3])
    assert len(crosslign.scores(tmp_path)) == 0


WRONG = [None, 3, 1.5, "x", b"x", [3], {"a": 3}, object(), float("nan"), True, -1]
CALLS = {
    "encoder: name": (lambda given, _: crosslign.encoder(given), []),
    "encoder: readout": (lambda given, _: crosslign.encoder("me5_small", readout=given), [None]),
    "encoder: device": (lambda given, _: crosslign.encoder("me5_small", device=given), [None]),
    "encoder: config": (lambda given, _: crosslign.encoder("me5_small", config=given), []),
    "encode: lang": (lambda given, encoder: encoder.encode(["a"], lang=given), ["x"]),
    "mine: encoder": (lambda given, _: crosslign.mine(["a"], ["b"], given), []),
    "mine: margin": (lambda given, _: crosslign.mine(["a"], ["b"], _Fixed(), margin=given), []),
    "mine: retrieval": (lambda given, _: crosslign.mine(["a"], ["b"], _Fixed(), retrieval=given), []),
    "mine: threshold": (lambda given, _: crosslign.mine(["a"], ["b"], _Fixed(), threshold=given), [None, 3, 1.5, -1]),
    "margin_scores: target": (lambda given, _: crosslign.margin_scores(np.eye(2), given), []),
    "evaluate: encoder": (lambda given, _: crosslign.evaluate(given, ["sts17"], config=QUICK), []),
    "evaluate: tasks": (lambda given, _: crosslign.evaluate(_Fixed(), given, config=QUICK), []),
    "objective: name": (lambda given, _: crosslign.objective(given), []),
    "objective: option": (lambda given, _: crosslign.objective("infonce", temperature=given), [None, 3, 1.5]),
    "names: kind": (lambda given, _: crosslign.names(given), []),
    "scores: files": (lambda given, _: crosslign.scores(given), []),
    "table: name": (lambda given, _: crosslign.table(given), []),
    "table: directory": (lambda given, _: crosslign.table("quickstart", given), []),
    "table: configfile": (lambda given, _: crosslign.table("quickstart", configfile=given), []),
}


@pytest.mark.parametrize("argument", CALLS)
def test_an_argument_of_a_wrong_kind_is_an_error_that_says_so(argument, encoder):
    """Not one of Python's from deep inside, as the page promises."""
    call, right = CALLS[argument]
    for given in WRONG:
        if not any(given is one for one in right):
            _raised(call, given, encoder)


def test_what_wrong_arguments_are_told(encoder):
    assert "not an encoder; found 'me5_small'. Load one with crosslign.encoder" in str(_raised(crosslign.mine, ["a"], ["b"], "me5_small"))
    assert "crosslign.mine: threshold: found '1'; must be of type number" in str(
        _raised(crosslign.mine, ["a"], ["b"], _Fixed(), threshold="1")
    )
    assert "unknown device 'gpu'" in str(_raised(crosslign.encoder, "me5_small", device="gpu"))
    found = _raised(crosslign.encoder, "me5_small", device=f"cuda:{torch.cuda.device_count()}")
    assert isinstance(found, ResourceError)
    assert "no encoder can be put on cuda" in str(found)
    for call, wrong, right in (
        (lambda: crosslign.mine(["a"], ["b"], _Fixed(), thresold=1), "mine: .*'thresold'", "threshold"),
        (lambda: crosslign.evaluate(_Fixed(), task=["sts17"]), "evaluate: .*'task'", "tasks"),
        (lambda: crosslign.scores(file="x"), "scores: .*'file'", "files"),
    ):
        with pytest.raises(InputError, match=f"{wrong}.*'{right}'"):
            call()


def test_what_cannot_be_is_said_in_words(cache, tmp_path, encoder):
    assert "no encoder in this folder" in str(_raised(crosslign.encoder, tmp_path))
    (tmp_path / "config.json").write_text("{}")
    assert "has no embedding settings" in str(_raised(crosslign.encoder, tmp_path))
    assert "found one text, expected a list" in str(_raised(crosslign.evaluate, encoder, "sts17"))
    assert "unknown kind 'nothing'" in str(_raised(crosslign.names, "nothing"))
    assert "did you mean 'tatoeba'" in str(_raised(crosslign.evaluate, encoder, ["tatoebas"]))
    assert "needs the logits" in str(_raised(crosslign.evaluate, encoder, ["americasnli"]))
    assert "found one text, expected a list" in str(_raised(encoder.encode, "Hello"))
    assert "found one text, expected a list" in str(_raised(crosslign.mine, "Hello", ["a"], encoder))
    assert "did you mean 'ratio'" in str(_raised(crosslign.margin_scores, np.eye(2), np.eye(2), margin="rati"))
    assert str(tmp_path / "none.json") in str(_raised(crosslign.scores, str(tmp_path / "none.json")))
    assert "its type is NoneType" in str(_raised(crosslign.scores, None))
    assert "config.yaml: no project here" in str(_raised(crosslign.table, "quickstart", tmp_path))
    for call, *given in ((crosslign.names, "encoders"), (crosslign.table, "quickstart"), (crosslign.evaluate, encoder, ["sts17"])):
        with pytest.raises(InputError, match=r"config: .*list"):
            call(*given, config="scale=quick")
    assert "2 languages for 1 sentence" in str(_raised(encoder.encode, ["a"], ["en", "de"]))
    with pytest.raises(InputError, match=r"max_lenght.*'max_length'"):
        encoder.encode(["a"], max_lenght=3)
    with pytest.raises(InputError, match=r"poling.*'pooling'"):
        crosslign.encoder("me5_small", readout={"poling": "mean"})
    with pytest.raises(InputError, match=r"'rati'.*'ratio'"):
        crosslign.mine(["a"], ["b"], _Gives(None), margin="rati")  # before anything is encoded
    assert "no sentence to mine" in str(_raised(crosslign.mine, ["a"], [" "], encoder))
    assert "did you mean 'infonce'" in str(_raised(crosslign.objective, "infonse"))
    with pytest.raises(InputError, match="'heat'"):
        crosslign.objective("infonce", heat=1)
    with pytest.raises(NetworkError):  # of the process that fetches, as itself
        crosslign.encoder("minilm_l6", config=["scale=laptop"])
