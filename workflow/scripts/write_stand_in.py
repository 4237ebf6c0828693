"""Write the files of a source from the project's own sentences."""

from _engine import run

from crosslign.stages.write_stand_in import write_stand_in

run(write_stand_in, snakemake)
