"""Texts of a table stay text in its Markdown."""

import pytest

from crosslign.reporting.markup import markdown_escape


@pytest.mark.parametrize(
    "text", ["- a", "+ a", "1. a", "2) a", "# a", "---", "===", "&lt;b&gt;", "a $x$ b", "~~a~~", "*a*", "[a](b)", "a|b", "-0.01", "12.5"]
)
def test_texts_are_text_in_markdown_wherever_they_stand(text):
    """As GitHub's reader of Markdown shows them: each is one paragraph of its own letters."""
    markdown = pytest.importorskip("markdown_it")
    reader = markdown.MarkdownIt("gfm-like", {"linkify": False})
    tokens = reader.parse(markdown_escape(text))
    assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"]
    assert "".join(child.content for child in tokens[1].children) == text
