"""Every loss once more, written as loops over single numbers straight from the formulas; gradients come from autograd over these."""

from __future__ import annotations

import torch


def cosine(u, v):
    dot = sum(p * q for p, q in zip(u, v, strict=True))
    return dot / (sum(p * p for p in u) ** 0.5 * sum(q * q for q in v) ** 0.5)


def exp(x):
    return torch.exp(x) if isinstance(x, torch.Tensor) else torch.exp(torch.tensor(float(x), dtype=torch.float64))


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def info_nce(a, b, temperature=0.05, hard=None, owners=(), weight=0.0, left_out=frozenset()):
    """`left_out`: (anchor, column) pairs, columns of b first, then of the hard negatives."""
    losses = []
    for i in range(len(a)):
        below = 0
        for j in range(len(b)):
            if (i, j) not in left_out:
                below = below + exp(cosine(a[i], b[j]) / temperature)
        for j in range(len(hard) if hard is not None else 0):
            if (i, len(b) + j) not in left_out:
                below = below + exp(cosine(a[i], hard[j]) / temperature + (weight if owners[j] == i else 0))
        losses.append(-torch.log(exp(cosine(a[i], b[i]) / temperature) / below))
    return losses


def moco_direction(queries, keys, queues, temperature, extra=lambda i: []):
    """`queues[i]`: the queue that row i is scored against; `extra(i)`: further negatives of row i."""
    losses = []
    for i in range(len(queries)):
        above = exp(cosine(queries[i], keys[i]) / temperature)
        below = above
        for negative in [*queues[i], *extra(i)]:
            below = below + exp(cosine(queries[i], negative) / temperature)
        losses.append(-torch.log(above / below))
    return losses


def scl(anchors, views, labels, temperature, same_class=False):
    losses = []
    for i in range(len(anchors)):
        s = [exp(cosine(anchors[i], view) / temperature) for view in views]
        if same_class:
            alike = [j for j in range(len(views)) if labels[j] == labels[i]]
            losses.append(mean(-torch.log(s[j] / sum(s)) for j in alike))
        else:
            losses.append(-torch.log(s[i] / (s[i] + sum(s[j] for j in range(len(views)) if labels[j] != labels[i]))))
    return losses


def scl_retrieval(anchors, views, positive, temperature, normalise=False):
    losses = []
    for i in range(len(anchors)):
        s = [exp(cosine(anchors[i], view) / temperature) for view in views]
        negatives = sum(s[k] for k in range(len(views)) if not positive[i][k])
        chosen = [j for j in range(len(views)) if positive[i][j]]
        total = sum(-torch.log(s[j] / (s[j] + negatives)) for j in chosen)
        losses.append(total / len(chosen) if normalise else total)
    return losses


def softmax(numbers):
    total = sum(exp(x) for x in numbers)
    return [exp(x) / total for x in numbers]


def kl(p, q):
    return sum(x * torch.log(x / y) for x, y in zip(p, q, strict=True))


def mpcl(vectors, groups, anchors, hard=(), temperature=0.05, rescale="none", left_out=lambda i, j: False, bounds_move=False):
    """Losses of the anchors (places in `vectors`); `left_out(i, j)`: candidates that anchor i's denominator lacks.

    `bounds_move`: the bounds of the rescaling have a gradient too.
    """
    candidates = [*vectors, *hard]
    table = {i: {j: cosine(vectors[i], candidates[j]) for j in range(len(candidates)) if j != i and not left_out(i, j)} for i in anchors}
    plain = (lambda c: c) if bounds_move else (lambda c: float(c.detach()))
    seen = [plain(c) for row in table.values() for c in row.values()]
    losses = []
    for i, row in table.items():
        values = seen if rescale == "global" else [plain(c) for c in row.values()]
        low, high = min(values), max(values)
        scores = {
            j: c / temperature if rescale == "none" else 2 / temperature * (c - low) / (high - low) - 1 / temperature
            for j, c in row.items()
        }
        above = sum(exp(s) for j, s in scores.items() if j < len(vectors) and groups[j] == groups[i])
        losses.append(-torch.log(above / sum(exp(s) for s in scores.values())))
    return losses


def ranking(query_rows, keys, ranks, count, temperatures, average=False, keep=lambda i, k: True, over="all"):
    terms = []
    for r in range(1, count):
        losses = []
        for i in range(len(query_rows)):
            own = [k for k in range(len(keys)) if keep(i, k) and ranks[i][k] == r]
            at_least = [k for k in range(len(keys)) if keep(i, k) and ranks[i][k] >= r]
            if own:
                s = {k: exp(cosine(query_rows[i], keys[k]) / temperatures[r - 1]) for k in at_least}
                above = sum(s[k] for k in own) / (len(own) if average else 1)
                losses.append(-torch.log(above / sum(s.values())))
        if losses:
            terms.append(sum(losses) / (len(query_rows) if over == "all" else len(losses)))
    return sum(terms)


def gaussian_posteriors(delta, means, variances, logits, power=1, divide=1.0):
    prior = softmax(list(logits))
    logs = []
    for r in range(len(means)):
        density = 0
        for k in range(len(delta)):
            density = density - 0.5 * (
                torch.log(2 * torch.tensor(torch.pi, dtype=torch.float64))
                + torch.log(variances[r][k])
                + (delta[k] - means[r][k]) ** 2 / variances[r][k]
            )
        logs.append(power * torch.log(prior[r]) + density / divide)
    return softmax(logs)
