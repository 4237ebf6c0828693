"""`python`, as the tests' process that forks runs it (forks.py): files, folder and variables are this process's, and signals are told."""

import json
import os
import signal
import socket
import sys

address, *words = sys.argv[1:]
link = socket.socket(socket.AF_UNIX)
link.connect(address)
asked = {"words": words, "environment": dict(os.environ), "folder": os.getcwd()}  # noqa: PTH109 (pathlib takes as long to load as all the rest)
socket.send_fds(link, [json.dumps(asked).encode() + b"\n"], (0, 1, 2))
answers = link.makefile("r", encoding="ascii")
answers.readline()
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
    signal.signal(number, lambda number, frame: link.send(bytes([number])))
code = int(answers.readline())
if code < 0:
    if -code != signal.SIGKILL:
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
