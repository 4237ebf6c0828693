"""Cross-lingual sentence encoders: build their data, train them, compare them.

The package follows one line of data: sources, corpora, views, examples, systems, embeddings, scores, tables.
Each noun is a sub-package; a module imports only from its own floor or from a lower one (docs/architecture.md).
"""

__version__ = "0.1.0"
