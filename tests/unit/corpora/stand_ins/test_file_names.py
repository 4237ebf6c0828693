import pytest

from crosslign.corpora.stand_ins._names import language_in
from crosslign.errors import InputError

TMX = "all.en-<language>.tmx.zip"


@pytest.mark.parametrize(("name", "code"), [("all.en-fr.tmx.zip", "fr"), ("all.en-ckb.tmx.zip", "ckb"), ("all.en-es-LA.tmx.zip", "es-LA")])
def test_the_code_is_kept_as_it_stands(name, code):
    assert language_in(name, TMX) == code


@pytest.mark.parametrize("name", ["all.en-.tmx.zip", "all.en-fr.tmx", "allxen-fr.tmx.zip", "all.en-fr/..tmx.zip", "all.en-fr.tmx.zip\n"])
def test_another_name_is_refused_with_the_form(name):
    with pytest.raises(InputError, match=r"all\.en-<language>\.tmx\.zip"):
        language_in(name, TMX)
