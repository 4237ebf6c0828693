"""Official file formats, read into rows of the corpus schemas."""
