"""The order of tests, as CROSSLIGN_TEST_ORDER says: `reverse`, or a number that a random order is drawn by."""

import os
import random


def pytest_collection_modifyitems(items):
    order = os.environ.get("CROSSLIGN_TEST_ORDER", "")
    if order == "reverse":
        items.reverse()
    elif order:
        random.Random(order).shuffle(items)
