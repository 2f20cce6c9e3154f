"""Forks as fast as it can, in one of several ways, so that forks are in progress during the kill."""

import os
import signal
import time


def endless(one):
    while True:
        try:
            one()
        except OSError:
            pass


def sessions():
    if os.fork() == 0:
        os.setsid()


def programs():
    if os.fork() == 0:
        os.execv("/bin/sh", ["sh", "-c", "while :; do sh -c 'sleep 9' & done"])


def parents_go():
    if os.fork() != 0:
        os._exit(0)


if kills_zygote:
    os.kill(os.getppid(), signal.SIGKILL)
if ends_first:
    # The script ends while its children continue.
    if os.fork() == 0:
        endless(os.fork if kind == "plain" else {"sessions": sessions, "programs": programs, "parents_go": parents_go}[kind])
    emit_result("ended")
    time.sleep(0.2)
else:
    emit_result("bombing")
    if kind == "parents_go" and os.fork() != 0:
        time.sleep(60)
    endless({"plain": os.fork, "sessions": sessions, "programs": programs, "parents_go": parents_go}[kind])
