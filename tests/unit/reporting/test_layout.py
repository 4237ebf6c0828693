"""Letters of footnotes: one for each text, in the order of reading, as columns of a sheet are called."""

from crosslign.reporting.layout import _Footnotes, by_letter


def test_equal_texts_share_a_letter_and_two_letters_follow_z():
    notes = _Footnotes()
    letters = [notes.of(f"note {number}") for number in range(702)]
    assert letters[:3] + letters[25:28] + letters[51:53] + letters[-1:] == ["a", "b", "c", "z", "aa", "ab", "az", "ba", "zz"]
    assert len(set(letters)) == 702
    assert sorted(letters, key=by_letter) == letters
    again = _Footnotes()
    assert again.join(["x", "y\nz", "x"]) == "a,b"
    assert (again.of("y z"), again.letters) == ("b", {"x": "a", "y z": "b"})
