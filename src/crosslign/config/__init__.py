"""Configuration: YAML checked by schema, catalogs, resolved recipes, and what each artefact is made of."""
