"""Compiled maps of characters: what the fast tokenizer's normaliser makes of each character."""

from __future__ import annotations

import struct

from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import normalizers

from crosslign.encoders.formats._charsmap import compile_charsmap

CHARACTERS = st.characters(exclude_characters="\x00", exclude_categories=("Cs",))
MAPS = st.dictionaries(CHARACTERS, st.text(CHARACTERS, max_size=4), min_size=1, max_size=60)


@given(MAPS, st.lists(CHARACTERS, max_size=30))
@example({"a": "", "é": "e", "日": "nichi", "𝐛": "b"}, ["a", "é", "日", "𝐛", "b", "è"])
@settings(max_examples=200)
def test_every_character_becomes_its_replacement_and_others_stay(replacements, others):
    normaliser = normalizers.Precompiled(compile_charsmap(replacements))
    for character in [*replacements, *others]:
        assert normaliser.normalize_str(character) == replacements.get(character, character)


@given(MAPS)
@settings(max_examples=50)
def test_no_byte_leads_a_walk_beyond_the_table(replacements):
    compiled = compile_charsmap(replacements)
    (size,) = struct.unpack_from("<I", compiled)
    assert size % 1024 == 0
    units = struct.unpack_from(f"<{size // 4}I", compiled, 4)
    for index, unit in enumerate(units):
        if unit and not unit >> 31:
            base = index ^ ((unit >> 10) << ((unit & 512) >> 6))
            assert base | 255 < len(units)


@given(MAPS)
@settings(max_examples=20)
def test_order_of_the_map_does_not_matter(replacements):
    assert compile_charsmap(replacements) == compile_charsmap(dict(reversed(replacements.items())))
