"""Names in the results of the fixture `results`."""

SCORE = "scores/A-s1/last/mean/task.json"
SELECT = {"task": "task", "subset": "de", "metric": "f1", "protocol": "", "direction": ""}
TABLE = {"columns": [{"label": "x"}], "cells": [[{"scores": [SCORE], "select": SELECT}]]}
"""A table of one cell, as its lineage names it."""
HEAD = "table,row,column,ours,ours_std,n_seeds,published,ci_low,ci_high,mark,footnotes,score_file,record\n"
