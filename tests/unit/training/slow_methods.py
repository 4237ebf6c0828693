"""Losses of the methods for a second trainer, written from their descriptions alone: loops over anchors and candidates, in float64.

None of the library's own code is used. What a run draws (anchors, shares of an interpolation, parallel rows) is given, since another
draw would be as right.
"""

from __future__ import annotations

import math

import torch
from torch.nn.functional import linear, one_hot, softplus


def unit(vectors):
    return vectors / vectors.norm(dim=-1, keepdim=True)


def cosines(left, right):
    return unit(left) @ unit(right).T


def contrast(positive, negatives):
    """−log e^p / (e^p + Σ e^n) of one positive score and a list of negative ones."""
    scores = torch.stack([positive, *negatives])
    return -(positive - scores.max() - (scores - scores.max()).exp().sum().log())


def head_logits(part, options, vector):
    """Return a classification part's logits of one vector: dense, tanh or ReLU, linear (no dropout)."""
    *dense, last = [(part[name], part[name.replace("weight", "bias")]) for name in part if name.endswith("weight")]
    for layer in dense:
        hidden = linear(vector, *layer)
        vector = hidden.relu() if options.get("head") == "mlp" else hidden.tanh()
    return linear(vector, *last)


def log_posteriors(part, options, x, y):
    """Return log P(r | x, y) [N] of unit vectors, by the mixture over x − y or by the network over both."""
    if options["kind"] == "rank_network":
        hidden = linear(torch.cat([x, y]), part["first.weight"], part["first.bias"]).relu()
        return linear(hidden, part["last.weight"], part["last.bias"]).log_softmax(-1)
    variances = part["log_variances"].clamp(math.log(1e-6), 0.0)
    distances = ((x - y) - part["means"]).square() / variances.exp()
    density = -0.5 * (math.log(2 * math.pi) + variances + distances).sum(-1)
    prior = part["prior_logits"].log_softmax(-1)
    return ((2 if options.get("squared_prior") else 1) * prior + density).log_softmax(-1)


class SlowMethods:
    """The terms; `encode`, `projected`, `_member`, parts, queues, rank scores and what is to follow the loss are the trainer's."""

    # ---- mSimCSE, vanilla contrast

    def infonce(self, term, columns, drawn):
        tau = term["temperature"]
        if "views" in columns:
            return self._over_views(
                term, columns, lambda s, rows, i: contrast(s[i, i] / tau, [s[i, j] / tau for j in range(len(rows)) if j != i])
            )
        second = [a if b is None else b for a, b in zip(columns["a_text"], columns["b_text"], strict=True)]
        second_langs = [a if b is None else b for a, b in zip(columns["a_lang"], columns["b_lang"], strict=True)]
        anchors = self.projected(term, self.encode(term, columns["a_text"], columns["a_lang"]))
        positives = self.projected(term, self.encode(term, second, second_langs))
        scores = cosines(anchors, positives) / tau
        hard = torch.zeros(len(anchors), 0)
        if any(columns.get("c_text", [])):
            rows = [i for i, text in enumerate(columns["c_text"]) if text is not None]
            wrong = self.encode(term, [columns["c_text"][i] for i in rows], [columns["c_lang"][i] for i in rows])
            hard = cosines(anchors, self.projected(term, wrong)) / tau
        rows = range(len(anchors))
        return sum(contrast(scores[i, i], [*(scores[i, j] for j in rows if j != i), *hard[i]]) for i in rows) / len(anchors)

    # ---- views: SCL, CL, MVA

    def _view_numbers(self, term, columns):
        kinds = term.get("kinds")
        kept = [[view for view in views if not kinds or view["kind"] in kinds] for views in columns["views"]]
        return kept, max(map(len, kept))

    def _encoded_views(self, term, columns, sentences):
        """Yield (anchors, views, rows of the batch) for each number of view."""
        kept, count = self._view_numbers(term, columns)
        size = len(kept)
        if sentences:
            anchors = self.encode(term, [*columns["a_text"], *columns["b_text"]], [*columns["a_lang"], *columns["b_lang"]])
        else:
            anchors = self.encode(term, columns["a_text"], columns["a_lang"], columns["b_text"])
        for number in range(count):
            views = [(i, views[number]) for i, views in enumerate(kept) if len(views) > number]
            langs = [view["lang"] for _, view in views]
            first, second = ([view[side] for _, view in views] for side in ("a_text", "b_text"))
            rows = [i for i, _ in views]
            if sentences:
                rows = rows + [size + i for i in rows]
                yield anchors[rows], self.encode(term, [*first, *second], [*langs, *langs]), rows
            else:
                yield anchors[rows], self.encode(term, first, langs, second), rows

    def _over_views(self, term, columns, loss):
        sentences, losses = term.get("encode") == "sentences" or term.get("form") == "retrieval", []
        for anchors, views, rows in self._encoded_views(term, columns, sentences):
            scores = cosines(anchors, views)
            losses.append(sum(loss(scores, rows, i) for i in range(len(rows))) / len(rows))
        return sum(losses) / len(losses)

    def supervised_contrastive(self, term, columns, drawn):
        tau, labels = term["temperature"], [label[0] for label in columns["label"]]
        if term.get("form", "classification") == "classification":

            def other_class(s, rows, i):
                return contrast(s[i, i] / tau, [s[i, j] / tau for j, row in enumerate(rows) if labels[row] != labels[rows[i]]])

            return self._over_views(term, columns, other_class)
        texts = [*columns["a_text"], *columns["b_text"]]
        paraphrases = {(a, b) for a, b, label in zip(columns["a_text"], columns["b_text"], labels, strict=True) if label == 1}

        def same(i, j):
            return texts[i] == texts[j] or (texts[i], texts[j]) in paraphrases or (texts[j], texts[i]) in paraphrases

        def literal_sum(s, rows, i):
            negatives = [s[i, k] / tau for k, row in enumerate(rows) if not same(rows[i], row)]
            return sum(contrast(s[i, j] / tau, negatives) for j, row in enumerate(rows) if same(rows[i], row))

        return self._over_views(term, columns, literal_sum)

    def alignment(self, term, columns, drawn):
        losses = []
        for anchors, views, _ in self._encoded_views(term, columns, term.get("encode") == "sentences"):
            values = []
            for x, y in zip(anchors, views, strict=True):
                if term["similarity"] == "cosine":
                    values.append(-(unit(x) @ unit(y)))
                elif term["similarity"] == "mse":
                    values.append((unit(x) - unit(y)).square().sum())
                else:
                    part = self.parts[term["part"]], self.recipe["parts"][term["part"]]
                    p, q = (head_logits(*part, h).log_softmax(-1) for h in (x, y))
                    there, back = (p.exp() * (p - q)).sum(), (q.exp() * (q - p)).sum()
                    values.append(there if term["similarity"] == "kl" else there + back)
            losses.append(sum(values) / len(values))
        return sum(losses) / len(losses)

    # ---- MPCL

    def multi_positive_infonce(self, term, columns, drawn):
        """`drawn`: for each group the number of its anchor; for pairs the first sentence is the anchor."""
        tau, texts, langs, owners, anchors = term["temperature"], [], [], [], []
        groups = columns["texts"] if "texts" in columns else list(zip(columns["a_text"], columns["b_text"], strict=True))
        tongues = columns["langs"] if "texts" in columns else list(zip(columns["a_lang"], columns["b_lang"], strict=True))
        for number, (members, spoken) in enumerate(zip(groups, tongues, strict=True)):
            chosen = drawn[number] if "texts" in columns else 0
            anchors.append(len(texts) + chosen)
            texts += members
            langs += spoken
            owners += [number] * len(members)
        vectors = self.projected(term, self.encode(term, texts, langs))
        hard = torch.zeros(0, vectors.shape[1], dtype=torch.float64)
        if any(columns.get("c_text", [])):
            hard = self.projected(term, self.encode(term, columns["c_text"], columns["c_lang"]))
        everything = torch.cat([vectors, hard])
        scores = cosines(vectors[anchors], everything)
        others = range(len(everything))
        if term.get("denominator") == "positives_only":
            others = [j for j in others if j not in anchors]
        pool = [[j for j in others if j != anchors[i]] for i in range(len(anchors))]
        seen = [[scores[i, j].detach() for j in row] for i, row in enumerate(pool)]
        losses = []
        for i, row in enumerate(pool):
            bounds = {"global": [c for one in seen for c in one], "row": seen[i], "none": [torch.tensor(-1.0), torch.tensor(1.0)]}
            low, high = (pick(torch.stack(bounds[term.get("rescale", "global")])) for pick in (torch.min, torch.max))
            scaled = {j: 2 / tau * (scores[i, j] - low) / (high - low) - 1 / tau for j in row}
            positives = torch.stack([scaled[j] for j in row if j < len(owners) and owners[j] == i])
            losses.append(torch.stack(list(scaled.values())).logsumexp(0) - positives.logsumexp(0))
        return sum(losses) / len(losses)

    # ---- MoCo-BERT, EMMA-X phase 1

    def _keys(self, term, texts, langs):
        with torch.no_grad():
            return unit(self.encode(term, texts, langs, members=self.queues[term["queue"]].members))

    def _stage(self, term, keys, langs):
        for name in self.members:
            mine = [key for key, lang in zip(keys, langs, strict=True) if self._member(lang) == name]
            self.staged[term["queue"], name] = mine

    def momentum_contrast(self, term, columns, drawn):
        tau, queue, size = term["temperature"], self.queues[term["queue"]], len(columns["a_text"])
        sides = [(columns["a_text"], columns["a_lang"]), (columns["b_text"], columns["b_lang"])]
        queries = [unit(self.encode(term, *side)) for side in sides]
        keys = [self._keys(term, *side) for side in sides]
        total = 0.0
        for mine, other in ((0, 1), (1, 0)):
            for i in range(size):
                negatives = list(queue.rows(self._member(sides[other][1][i])))
                if term.get("in_batch_keys"):
                    negatives += [keys[other][j] for j in range(size) if j != i]
                if term.get("own_side_keys"):
                    negatives += [keys[mine][j] for j in range(size) if j != i]
                query = queries[mine][i]
                total = total + contrast(query @ keys[other][i] / tau, [query @ key / tau for key in negatives]) / size
        self._stage(term, [*keys[0], *keys[1]], [*sides[0][1], *sides[1][1]])
        return total

    # ---- EMMA-X: classifier and ranks

    def gmm_ranks(self, term, columns, drawn):
        part, options = self.parts[term["classifier"]], self.recipe["parts"][term["classifier"]]
        if term.get("labels", "interpolation") == "encoder":
            anchors, candidates = self._candidates(term, columns, drawn)
            s, losses = self.scores[term["scores"]], []
            for i, x in enumerate(anchors.detach()):
                for y, own, _ in candidates(i):
                    label = 0 if own else int((x @ y - s).abs().argmin())
                    losses.append(-log_posteriors(part, options, x, y)[label])
            return sum(losses) / len(losses)
        shift, shares = drawn
        count, size = options.get("ranks", 4), len(columns["a_text"])
        x = unit(self.encode(term, columns["a_text"], columns["a_lang"])).detach()
        y = self._keys(term, columns["b_text"], columns["b_lang"])
        total, found = 0.0, [[] for _ in range(count)]
        for i in range(size):
            other = y[(i - shift) % size]
            labelled = [(y[i], 1), (other, count)]
            for turn in range(term.get("interpolations", 4)):
                share = float(shares[turn * size + i])
                labelled.append(((1 - share) * y[i] + share * other, math.ceil(1 + (count - 1) * share - 1e-12)))
            for vector, rank in labelled:
                total = total - log_posteriors(part, options, x[i], vector)[rank - 1] / size
                found[rank - 1].append(float(x[i] @ unit(vector)))
        self.moved.append(lambda: self._measure(term["scores"], found))
        return total

    def _measure(self, name, found):
        """Move measured scores: the mean cosine of each rank's pairs, those of n steps ago counted εⁿ times."""
        options = self.recipe["parts"][name]
        steps = self.measured.setdefault(name, [])
        steps.append(found)
        if options.get("s_init", "measured") == "measured":
            epsilon = options.get("epsilon", 0.999)
            for r in range(len(found)):
                pairs = [(cosine, epsilon ** (len(steps) - 1 - n)) for n, ranks in enumerate(steps) for cosine in ranks[r]]
                if pairs:
                    self.scores[name][r] = sum(cosine * share for cosine, share in pairs) / sum(share for _, share in pairs)

    def _candidates(self, term, columns, drawn):
        """Return unit anchors, and candidates(i): (vector, whether it is the anchor's own translation, cosine)."""
        queue = self.queues[term["queue"]]
        anchors = unit(self.encode(term, columns["a_text"], columns["a_lang"]))
        keys = self._keys(term, columns["a_text"], columns["a_lang"])
        parallel = self._keys(term, [columns["b_text"][i] for i in drawn], [columns["b_lang"][i] for i in drawn]) if drawn else []
        ring = queue.rows("main")
        self._stage(term, keys, columns["a_lang"])

        def candidates(i):
            pool = [*((key, False) for j, key in enumerate(keys) if j != i), *((key, False) for key in ring)]
            pool += [(key, drawn[j] == i) for j, key in enumerate(parallel)]
            return [(key, own, anchors[i] @ key) for key, own in pool]

        return anchors, candidates

    def rank_infonce(self, term, columns, drawn):
        part, options = self.parts[term["classifier"]], self.recipe["parts"][term["classifier"]]
        count, low, high = options.get("ranks", 4), term.get("temperature_min", 0.05), term.get("temperature_max", 0.1)
        taus = [low + (high - low) * (r - 1) / (count - 2) if count > 2 else low for r in range(1, count)]
        anchors, candidates = self._candidates(term, columns, drawn)
        by_rank, means = [[] for _ in range(count - 1)], [[] for _ in range(count)]
        for i, x in enumerate(anchors):
            ranked = []
            for y, own, cosine in candidates(i):
                rank = 1 if own else int(log_posteriors(part, options, x.detach(), y).argmax()) + 1
                ranked.append((rank, cosine))
                means[rank - 1].append(float(cosine.detach()))
            for r in range(1, count):
                over = [cosine / taus[r - 1] for rank, cosine in ranked if rank == r]
                under = [cosine / taus[r - 1] for rank, cosine in ranked if rank >= r]
                if over:
                    by_rank[r - 1].append(torch.stack(under).logsumexp(0) - torch.stack(over).logsumexp(0))
        scores, epsilon = self.scores[term["scores"]], self.recipe["parts"][term["scores"]].get("epsilon", 0.999)

        def move():
            for r, found in enumerate(means):
                if found:
                    scores[r] = epsilon * scores[r] + (1 - epsilon) * sum(found) / len(found)

        self.moved.append(move)
        return sum((sum(losses) / len(anchors) for losses in by_rank if losses), 0 * anchors.sum())

    # ---- fine-tunes

    def cross_entropy(self, term, columns, drawn):
        part, options = self.parts[term["part"]], self.recipe["parts"][term["part"]]
        if term.get("encode") == "sentences":
            u, v = (unit(self.encode(term, columns[f"{side}_text"], columns[f"{side}_lang"])) for side in "ab")
            vectors = torch.cat([u, v, (u - v).abs()], 1)
        else:
            vectors = self.encode(term, columns["a_text"], columns["a_lang"], columns.get("b_text"))
        logits = torch.stack([head_logits(part, options, vector) for vector in vectors])
        form, rows = term.get("form", "single_label"), [i for i, used in enumerate(columns["supervised"]) if used]
        if form == "multi_label":
            losses = []
            for i in rows:
                gold = one_hot(torch.tensor([int(c) for c in columns["label"][i]]), options["labels"]).sum(0) if columns["label"][i] else 0
                losses.append((softplus(logits[i]) - gold * logits[i]).mean())
        elif form == "multiple_choice":
            questions = dict.fromkeys(columns["group"])
            members = {group: [i for i in rows if columns["group"][i] == group] for group in questions}
            right = {group: next(i for i in members[group] if columns["label"][i][0] == 1) for group in questions}
            losses = [logits[members[group], 0].logsumexp(0) - logits[right[group], 0] for group in questions]
        else:
            losses = [logits[i].logsumexp(0) - logits[i, int(columns["label"][i][0])] for i in rows]
        return sum(losses) / len(losses)

    def cosine_regression(self, term, columns, drawn):
        u, v = (unit(self.encode(term, columns[f"{side}_text"], columns[f"{side}_lang"])) for side in "ab")
        low, high = term.get("low", 0), term.get("high", 1)
        wanted = [(label[0] - low) / (high - low) for label in columns["label"]]
        rows = [i for i, used in enumerate(columns["supervised"]) if used]
        return sum((u[i] @ v[i] - wanted[i]) ** 2 for i in rows) / len(rows)

    def dual_encoder(self, term, columns, drawn):
        questions, answers = (self.encode(term, columns[f"{side}_text"], columns[f"{side}_lang"]) for side in "ab")
        scores = next(iter(self.parts[term["scale"]].values())) * cosines(questions, answers)
        rows = range(len(scores))
        return sum(contrast(scores[i, i], [scores[i, j] for j in rows if j != i]) for i in rows) / len(scores)
