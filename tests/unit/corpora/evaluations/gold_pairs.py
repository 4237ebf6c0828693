"""What an evaluation corpus holds, as a test reads it."""


def pairs_of(evaluation, subset):
    """(left lang, left text, right lang, right text, score) of each gold link."""
    texts = {row["text_id"]: (row["lang"], row["text"]) for row in evaluation.texts.to_pylist()}
    items = {(row["subset"], row["item_id"]): texts[row["text_id"]] for row in evaluation.items.to_pylist()}
    gold = [row for row in evaluation.gold.to_pylist() if row["subset"] == subset]
    return [(*items[subset, row["left"]], *items[subset, row["right"]], round(row["score"], 4)) for row in gold]
