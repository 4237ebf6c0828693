"""What the report says of code-switched views, language by language."""

from crosslign.reporting.markup import templates
from crosslign.reporting.report import switched_words


def test_each_language_has_a_line_and_those_without_a_dictionary_are_named():
    shares = {"words": 1200, "covered_share": 0.5, "replaced_share": 0.375, "identity_share": 0.1}
    counts = {"by_language": {"de": shares}, "without_dictionary": ["sw"]}
    found = {"switched": counts, "full": {"rows": 3}}
    rows = switched_words([{"artefact": {"kind": "view"}, "recipe": {"view": name}, "counts": counts} for name, counts in found.items()])
    assert rows == [{"view": "switched", "lang": "de", **shares}, {"view": "switched", "lang": "sw"}]
    empty = dict.fromkeys(["corpora", "learned", "overlap", "decontamination"], ())
    page = templates().get_template("report_data.html").render(**empty, switched=rows)
    assert "<td>1,200</td><td>50.0%</td><td>37.5%</td><td>10.0%</td>" in page
    assert "no dictionary: skipped" in page
