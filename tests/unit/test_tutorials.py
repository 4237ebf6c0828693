"""The tutorials run as they stand, on a few sentences and a tiny encoder."""

import importlib.util
import re
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

from crosslign.corpora.evaluation import EvaluationBuilder
from crosslign.encoders.model import Model
from crosslign.sentence_transformers import ObjectiveLoss

TUTORIALS = Path(__file__).resolve().parents[2] / "docs" / "tutorials"
VERSES = 60


@pytest.fixture
def several_positives(tmp_path, tiny_encoder, sentence_pairs, monkeypatch):
    """The tutorial, its results replaced by a tiny encoder and numbered sentences in six languages."""
    spec = importlib.util.spec_from_file_location("several_positives", TUTORIALS / "several_positives.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "RESULTS", tmp_path)
    Model.load({"main": tiny_encoder / "main"}).save(tmp_path / "encoders" / "minilm_l6", {"pooling": "mean", "max_length": 32})
    english = [f"{sentence_pairs[number % len(sentence_pairs)][0]} {number}" for number in range(VERSES)]
    rows = [{"group": str(n), "lang": lang, "text": f"{lang} {text}"} for n, text in enumerate(english) for lang in module.LANGS]
    (tmp_path / "corpora" / "bible_train").mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "corpora" / "bible_train" / "all.parquet")
    builder = EvaluationBuilder("tatoeba_bible")
    for number, text in enumerate(english[:20]):
        builder.item(f"de{number}", "de-en", "source", "de", f"Nun {text}")
        builder.item(f"en{number}", "de-en", "target", "en", f"Now {text}")
        builder.link("de-en", f"de{number}", f"en{number}")
    (tmp_path / "corpora" / "tatoeba_bible").mkdir()
    builder.build().write({part: tmp_path / "corpora" / "tatoeba_bible" / f"{part}.parquet" for part in ("texts", "items", "gold")})
    return module


def test_both_losses_of_several_positives_see_equally_many_sentences(several_positives, tmp_path, monkeypatch, capsys):
    seen = Counter()
    for loss in (MultipleNegativesRankingLoss, ObjectiveLoss):
        real = loss.forward

        def forward(self, features, labels=None, real=real, name=loss.__name__):
            features = list(features)
            seen[name] += sum(len(column["input_ids"]) for column in features)
            return real(self, features, labels)

        monkeypatch.setattr(loss, "forward", forward)
    monkeypatch.setattr(sys, "argv", ["several_positives.py", "--steps", "1"])
    several_positives.main()
    assert seen == {"MultipleNegativesRankingLoss": 96, "ObjectiveLoss": 96}
    head, *lines = capsys.readouterr().out.splitlines()[-4:]
    assert head.startswith("96 sentences each")
    assert [re.split(r"  +", line)[0] for line in lines] == [
        "untrained",
        "one positive (MultipleNegativesRankingLoss)",
        "several positives (multi_positive_infonce)",
    ]
    base = SentenceTransformer(str(tmp_path / "encoders" / "minilm_l6" / "main"), device="cpu")
    (sources, targets), *_ = several_positives.held_out().values()
    x, y = (base.encode(side, normalize_embeddings=True).astype(np.float64) for side in (sources, targets))
    right = 100 * np.mean((x @ y.T).argmax(1) == np.arange(20))
    assert re.split(r"  +", lines[0])[1:] == [f"de-en {right:.1f}", f"mean {right:.1f}"]
