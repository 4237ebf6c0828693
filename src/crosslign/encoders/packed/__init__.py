"""Encoders of the BERT family on packed batches, real tokens one behind another: in inference and in training, on CPUs and GPUs."""
