"""What an objective of a user's own returns is looked at before anything is computed with it."""

import pytest
import torch

from crosslign.errors import InputError
from crosslign.objectives.contract import Input, Loss, checked_inputs, checked_loss


def test_a_scalar_is_a_loss():
    total = torch.tensor(1.5, requires_grad=True)
    assert checked_loss("mine", total).total is total
    assert checked_loss("mine", Loss(total, {"accuracy": 0.5})).logged == {"accuracy": 0.5}
    assert checked_loss("mine", torch.ones(1)).total.shape == ()


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (None, "NoneType"),
        (1.5, "float"),
        ((torch.tensor(1.0), {}), "tuple"),
        (torch.ones(4), "shape [4]"),
        (torch.tensor(1), "torch.int64"),
        (Loss(torch.tensor(1.0), {"accuracy": torch.ones(2)}), "'accuracy': Tensor"),
    ],
)
def test_anything_else_is_named_with_what_was_expected(returned, said):
    with pytest.raises(InputError) as found:
        checked_loss("mine", returned)
    assert said in found.value.why
    assert found.value.where.endswith("mine")
    assert "scalar" in found.value.do


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (None, "NoneType"),
        ([Input(["a"], ["en"])], "list"),
        ({"a": ["a text"]}, "dict"),
        ({}, "no input"),
        ({"a": Input([], [])}, " 0, 0"),
        ({"a": Input(["a", "b"], ["en"])}, " 2, 1"),
        ({"a": Input(["a"], ["en"], pair_texts=["b", "c"])}, " 1, 1, 2"),
    ],
)
def test_inputs_that_cannot_be_encoded_are_named(returned, said):
    with pytest.raises(InputError) as found:
        checked_inputs("mine", returned)
    assert said in found.value.why


def test_inputs_are_taken_as_they_are():
    inputs = {"a": Input(["a"], ["en"]), "b": Input(["a", "b"], ["en", "de"], pair_texts=["c", "d"])}
    assert checked_inputs("mine", inputs) == inputs
