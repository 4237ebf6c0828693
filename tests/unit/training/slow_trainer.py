"""A second trainer, written from its description alone: plain padded encoders, whole batches, AdamW by hand, float64.

It knows no micro-batches, no packing and no caching.
"""

from __future__ import annotations

import math
from copy import deepcopy

import torch
from slow_methods import SlowMethods
from torch.nn.functional import linear
from transformers import AutoModel, AutoTokenizer


class Encoder:
    """A member of the model: what AutoModel makes of its folder, on padded batches."""

    def __init__(self, folder, length):
        self.tokenizer, self.length = AutoTokenizer.from_pretrained(folder), length
        self.module = AutoModel.from_pretrained(folder, attn_implementation="eager").double().eval()

    def copied(self):
        other = Encoder.__new__(Encoder)
        other.tokenizer, other.length, other.module = self.tokenizer, self.length, deepcopy(self.module)
        return other

    def __call__(self, text, pair, pooling, layer):
        """Return the vector of one text, or of a pair read as one sequence."""
        given = self.tokenizer([text], None if pair is None else [pair], truncation=True, max_length=self.length, return_tensors="pt")
        out = self.module(**given, output_hidden_states=True)
        states = out.hidden_states[layer][0]
        if pooling == "pooler":
            return out.pooler_output[0]
        return {
            "cls": lambda: states[0],
            "cls_before_mlp": lambda: states[0],
            "mean": lambda: states.mean(0),
            "max": lambda: states.amax(0),
        }[pooling]()


class Queue:
    """Momentum copies of the members, and a ring of their newest vectors for each."""

    def __init__(self, members, options):
        self.size, self.momentum = options["size"], options["momentum"]
        self.members = {name: member.copied() for name, member in members.items()}
        self.rings = {name: [None] * self.size for name in members}
        self.pointers = dict.fromkeys(members, 0)

    def average(self, members):
        with torch.no_grad():
            for name, member in members.items():
                for old, new in zip(self.members[name].module.parameters(), member.module.parameters(), strict=True):
                    old.mul_(self.momentum).add_(new, alpha=1 - self.momentum)

    def rows(self, name):
        return [row for row in self.rings[name] if row is not None]

    def enqueue(self, name, keys):
        for key in keys:
            self.rings[name][self.pointers[name]] = key.detach()
            self.pointers[name] = (self.pointers[name] + 1) % self.size


class SlowTrainer(SlowMethods):
    """Trains by a recipe; `parts` are the start of the trained parts: name → {tensor: value}."""

    def __init__(self, recipe, folders, parts, steps, scores=None):
        self.recipe, self.train, self.steps = recipe, recipe["train"], steps
        self.members = {name: Encoder(folder, self.train["max_length"]) for name, folder in folders.items()}
        self.parts = {
            name: {
                key: value.detach().double().clone().requires_grad_(not recipe["parts"][name].get("frozen")) for key, value in part.items()
            }
            for name, part in parts.items()
        }
        self.queues = {
            name: Queue(self.members, options) for name, options in recipe["parts"].items() if options["kind"] == "momentum_queue"
        }
        self.scores = dict(scores or {})  # name → s_r, float64 [N]
        self.measured = {}
        self.state = {}
        self.log = []

    # ---- what is trained, and how

    def _trained(self):
        """Return (name, parameter, peak rate, whether it decays, clip group)."""
        rate, named = self.train["learning_rate"], []
        for member, encoder in self.members.items():
            named += [(f"{member}.{name}", value, rate, None) for name, value in encoder.module.named_parameters()]
        for part, tensors in self.parts.items():
            options = self.recipe["parts"][part]
            own = part if "clip" in options else None
            named += [
                (f"{part}.{key}", value, options.get("learning_rate", rate), own) for key, value in tensors.items() if value.requires_grad
            ]
        return named

    def _share(self, step):
        """Return the share of the peak rate at a step."""
        warm = self.train.get("warmup_steps") or math.ceil(self.train.get("warmup_share", 0) * self.steps)
        if step < warm:
            return step / warm
        gone, last = (step - warm) / (self.steps - warm), self.train.get("final_share", 0.0)
        return (
            last
            + (1 - last) * {"linear": 1 - gone, "cosine": 0.5 * (1 + math.cos(math.pi * gone)), "constant": 1.0}[self.train["schedule"]]
        )

    def _update(self, step):
        trained, norms = self._trained(), {}
        for _, value, _, group in trained:
            if value.grad is not None:
                norms[group] = norms.get(group, 0.0) + float(value.grad.square().sum())
        bounds = {group: self.train["clip"] if group is None else self.recipe["parts"][group]["clip"] for group in norms}
        scales = {group: min(1.0, bounds[group] / (math.sqrt(norm) + 1e-6)) for group, norm in norms.items()}
        first, second = self.train["betas"]
        for name, value, rate, group in trained:
            if value.grad is None:
                continue
            gradient = value.grad * scales[group]
            age, mean, square = self.state.get(name, (0, torch.zeros_like(value), torch.zeros_like(value)))
            age, mean, square = age + 1, first * mean + (1 - first) * gradient, second * square + (1 - second) * gradient**2
            self.state[name] = (age, mean, square)
            now = rate * self._share(step)
            bare = (name.endswith("bias") or "LayerNorm" in name) and self.train["decayed"] == "matrices"
            with torch.no_grad():
                if self.train["weight_decay"] and not bare:
                    value.mul_(1 - now * self.train["weight_decay"])
                value.sub_(now * (mean / (1 - first**age)) / ((square / (1 - second**age)).sqrt() + self.train["epsilon"]))
            value.grad = None
        return {group: math.sqrt(norm) for group, norm in norms.items()}

    # ---- encoding

    def _member(self, lang):
        return lang if lang in self.members else "main"

    def encode(self, term, texts, langs, pairs=None, members=None):
        readout = self.recipe["readout"]
        pooling = term.get("pooling", readout["pooling"])
        layer = term.get("layer", -1 if "pooling" in term else readout["layer"])
        pairs = [None] * len(texts) if pairs is None else pairs
        members = members or self.members
        return torch.stack(
            [members[self._member(lang)](text, pair, pooling, layer) for text, lang, pair in zip(texts, langs, pairs, strict=True)]
        )

    def projected(self, term, vectors):
        if "projection" not in term:
            return vectors
        part = self.parts[term["projection"]]
        return linear(vectors, part["dense.weight"], part["dense.bias"]).tanh()

    # ---- one step

    def step(self, number, batches, drawn):
        """Take one step; `batches`: columns by examples; `drawn`: what the run drew, by objective and classifier."""
        total, terms = 0.0, []
        self.staged, self.moved = {}, []
        for queue in self.queues.values():  # after the queries, before the keys: here nothing depends on which comes first
            queue.average(self.members)
        for term in self.recipe["terms"]:
            own = drawn.get((term["objective"], term.get("classifier")), drawn.get("parallel"))
            loss = getattr(self, term["objective"])(term, batches[term["examples"]], own)
            terms.append(float(loss.detach()))
            total = total + term.get("weight", 1.0) * loss
        for (queue, member), keys in self.staged.items():
            self.queues[queue].enqueue(member, keys)
        for apply in self.moved:
            apply()
        total.backward()
        norms = self._update(number)
        self.log.append({"loss": float(total.detach()), "terms": terms, "norms": norms})
