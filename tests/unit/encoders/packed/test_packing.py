import torch

from crosslign.encoders.packed.packing import Packing

IDS = torch.tensor([[5, 6, 0, 0], [1, 2, 3, 4], [7, 8, 0, 0]])
MASK = (IDS != 0).long()


def test_the_longest_sentence_lies_first_and_equal_ones_keep_their_order():
    packing = Packing(IDS, MASK)
    assert packing.pack(IDS).tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert packing.positions.tolist() == [0, 1, 2, 3, 0, 1, 0, 1]
    assert packing.lengths.tolist() == [4, 2, 2]


def test_padding_is_zero_and_has_no_gradient():
    packing = Packing(IDS, MASK)
    packed = packing.pack(IDS).float()[:, None].requires_grad_()
    padded = packing.pad(packed)
    assert torch.equal(padded[:, :, 0], IDS.float())
    padded.pow(2).sum().backward()
    assert torch.equal(packed.grad, 2 * packed.detach())


def test_without_a_mask_all_is_real_and_nothing_moves():
    packing = Packing(IDS, None)
    assert torch.equal(packing.pack(IDS), IDS.reshape(-1))
    assert torch.equal(packing.pad(packing.pack(IDS)[:, None])[:, :, 0], IDS)


def test_a_batch_is_filled_up_by_sentences_that_nothing_reads():
    packing = Packing(IDS, MASK, filled=lambda tokens: tokens + 5)
    assert packing.lengths.tolist() == [4, 4, 2, 2, 1], "four tokens fit a row, the fifth has one of its own"
    ids = packing.pack(IDS)
    assert sorted(ids.tolist()) == [0] * 5 + [1, 2, 3, 4, 5, 6, 7, 8]
    packed = (ids + 10).float()[:, None].requires_grad_()
    padded = packing.pad(packed)
    assert torch.equal(padded[:, :, 0], (IDS + 10.0) * MASK)
    padded.sum().backward()
    assert torch.equal(packed.grad[:, 0], (ids != 0).float())
