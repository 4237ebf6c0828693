"""Numbers beside pictures of vectors, on sentences whose cosines are known."""

import numpy as np
import pytest

from crosslign.config.figures import ACCOMPANIED
from crosslign.config.schema import schemas_by_name
from crosslign.reporting.figures import FIGURES
from crosslign.reporting.figures._companions import COMPANIONS, companion_of, mean_cosine, neighbour_rate

LANGS, GROUPS = ["de", "en", "de", "en"], ["g0", "g0", "g1", "g1"]
VECTORS = np.array([[1.0, 0.0], [3.0, 4.0], [0.0, 2.0], [8.0, 6.0]])  # eins, one, zwei, two
"""Cosines: eins-one 0.6, eins-two 0.8, zwei-one 0.8, zwei-two 0.6."""


def test_the_nearest_of_another_language_counts_where_it_is_the_translation():
    assert neighbour_rate(VECTORS, LANGS, GROUPS) == 0.0
    assert neighbour_rate(VECTORS[[0, 3, 2, 1]], LANGS, GROUPS) == 1.0
    three = np.array([[1.0, 0.0], [4.0, 3.0], [0.0, 1.0], [5.0, 1.0]])  # only one is nearest to its own: eins
    assert neighbour_rate(three, LANGS, GROUPS) == pytest.approx(1 / 4)


def test_the_mean_cosine_is_of_translations_alone():
    assert mean_cosine(VECTORS, LANGS, GROUPS) == pytest.approx(0.6)


def test_a_sentence_is_no_translation_of_another_one_of_its_language():
    assert mean_cosine(np.array([[1.0, 0.0], [0.0, 1.0], [3.0, 4.0]]), ["en", "en", "de"], ["g"] * 3) == pytest.approx(0.7)


def test_a_panel_says_its_companion_and_nothing_without_one():
    assert companion_of({"companion": "neighbour_rate"}, VECTORS[[0, 3, 2, 1]], LANGS, GROUPS) == (
        {"neighbour_rate": 1.0},
        "\nnearest in another language is the translation: 100.0 %",
    )
    assert companion_of({}, VECTORS, LANGS, GROUPS) == ({}, "")


def test_a_figure_may_name_every_companion_and_no_other():
    figure = schemas_by_name()["paper"]["properties"]["figures"]["additionalProperties"]["properties"]
    assert set(figure["companion"]["enum"]) == set(COMPANIONS)
    assert set(ACCOMPANIED) <= set(figure["kind"]["enum"]) == set(FIGURES.names())
