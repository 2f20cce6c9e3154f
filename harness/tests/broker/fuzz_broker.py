"""The broker's code in one ordinary process, for the mutated input of campaigns/fuzz/: no PID 1, and nothing is ever killed.

Everything that reads bytes is the broker's own; the kernel's part is stood in for: a zygote that answers at once, a
script's process that has written its frames before it is asked, and directories of this process. One case after the other
comes on stdin (a line of JSON, then its bytes); for each a line of JSON, and the bytes for the host, go to stdout.
"""

import ctypes
import gc
import json
import os
import resource
import shutil
import signal
import socket
import struct
import sys
import tempfile
import time
import traceback

from sandglass_harness.broker import broker, channel, processes, sandbox
from sandglass_harness.broker.control_group import MemoryKills
from sandglass_harness.broker.cpu_time import CpuTime
from sandglass_harness.broker.intake import WIPE_SEC
from sandglass_harness.broker.run import Run
from sandglass_harness.broker.scratch import Roots

CASE_CPU_SEC, CASE_SEC = 5, 60  # a case that takes longer is a hang; on a busy machine the clock alone says little
TURNS = 400  # of the loop for one piece; a broker that has more to do is not coming to its end
PIECE = 60_000  # bytes that one message of a socket surely takes
KEY = bytes(range(32))


class Ended(BaseException):
    """Raised in place of the end of the broker's process."""


class Hang(BaseException):
    """A case took too long."""


class StandInZygote(processes.Zygote):
    """Answers at once without a fork: `pid` stands for each script's process."""

    def __init__(self, pid, child_bytes):
        near, self._far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        super().__init__(os.getpid(), near.detach())
        self._pid = pid
        self._child_bytes = child_bytes
        self._children = []

    def ask_to_fork(self, spare):
        child = socket.socket(fileno=os.dup(spare.child_fds()[0]))
        self._children.append(child)
        os.write(spare._child_out, b"out \xff\xc3")
        spare.close_child_ends()
        child.setblocking(False)
        try:
            child.send(self._child_bytes)
        except BlockingIOError:
            pass
        self._answer(self._pid)

    def ping(self):
        self._answer(0)

    ask_to_reap = ask_to_kill = ping

    def is_running(self):
        return True

    def close(self):
        for end in (self.socket, self._far, *self._children):
            end.close()

    def _answer(self, number):
        self._far.send(struct.pack("=i", number))
        self.answer_due = time.monotonic() + CASE_SEC


class TrackedSpare(processes.Spare):
    """Knows whether it is closed: descriptors are numbers, and a second close would hit somebody else's."""

    made = []

    def __init__(self):
        super().__init__()
        self.is_closed = False
        self.made.append(self)

    def close(self):
        self.is_closed = True
        super().close()


class NoReaper:
    """Neither kills nor reaps processes."""

    kills_at_once = True

    def _nothing(self, *_):
        return 0

    reap = forget = kill_group = status_of = _nothing

    def confirm_death(self):
        return True

    def kill_everything(self):
        raise AssertionError("the broker gave up a zygote that had answered")


class OwnSandbox(sandbox.Sandbox):
    """The directories of this process."""

    roots = None

    def __init__(self, config, zygote, _channel_fds):
        self.config = config
        self.zygote = zygote
        self.reaper = NoReaper()
        self.roots = OwnSandbox.roots
        self.memory_kills = MEMORY_KILLS
        self.shows_ends = False
        self.cpu_time = CPU_TIME

    def left_no_process(self, _pid):
        return True

    def is_collected(self):
        return True

    def note_resources(self):
        pass

    note_growth = note_resources

    def clean(self, _closed_sockets=0):
        return self.roots.wipe(WIPE_SEC)


MEMORY_KILLS = MemoryKills()
CPU_TIME = CpuTime(os.getpid())


class Case:
    """One broker, from its first request to the end of its channel."""

    def __init__(self, header, pieces, child_bytes, bench):
        self._pieces = pieces
        self._host, self._channel = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._reader, self._writer = socket.socketpair()
        for end in (self._channel, self._reader, self._writer):
            end.setblocking(False)
        self._zygote = StandInZygote(bench.dead if header["dead"] else bench.alive, child_bytes)
        config = {"workspace": bench.workspace, "checker": header["checker"], "tools": None, "preload": []}
        outbox = channel.GatheringOutbox(self._writer.fileno())
        self._broker = broker.Broker(config, self._channel.fileno(), outbox, self._zygote)
        self.out = b""

    def play(self):
        served = self._broker
        served._channel.open()
        served._watcher.watch_read(self._zygote.socket.fileno(), served._on_zygote)
        served._make_spare()
        self._settle()
        for piece in self._pieces:
            for at in range(0, len(piece), PIECE):
                self._host.send(piece[at : at + PIECE])
                self._settle()
        self._host.close()
        self._settle()
        raise AssertionError("the channel has ended, and the broker has not")

    def close(self):
        self._drain()
        for end in (self._host, self._channel, self._reader, self._writer):
            end.close()
        self._zygote.close()
        for spare in TrackedSpare.made:
            if not spare.is_closed:
                spare.close()
        TrackedSpare.made.clear()

    def _settle(self):
        """Turns of the broker's loop as long as anything waits for it."""
        for _ in range(TURNS):
            self._drain()
            ends = self._broker._end.phase == "collecting"
            if not ends and not self._broker._watcher._poll.poll(0):
                return
            self._broker._turn()
        raise AssertionError("the broker does not come to rest")

    def _drain(self):
        try:
            while data := self._reader.recv(1 << 20):
                self.out += data
        except BlockingIOError:
            pass


class Bench:
    """The parts that all cases share: a dead and a living process in place of a script's, and the directories."""

    def __init__(self):
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # a disk would take most of the time
        self.workspace = tempfile.mkdtemp(prefix="sandglass-fuzz-", dir=memory)
        self.alive, self._alive_end = _fork(lambda read: os.read(read, 1))
        self.dead, _ = _fork(lambda _read: None)
        OwnSandbox.roots = Roots([self.workspace])
        broker.Sandbox, broker.Spare = OwnSandbox, TrackedSpare

    def close(self):
        os.close(self._alive_end)
        shutil.rmtree(self.workspace, ignore_errors=True)


def _fork(live):
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(write)
        live(read)
        REALLY_EXIT(0)
    os.close(read)
    return pid, write


REALLY_EXIT = os._exit


def play_broker(header, pieces, child_bytes, bench):
    """Runs a broker to which a host sends these pieces. Returns (outcome, message, bytes for the host)."""
    case = Case(header, pieces, child_bytes, bench)
    try:
        case.play()
    except Ended as end:
        return ("ended" if end.args == (0,) else "crash"), f"exit code {end.args}", case.out
    except SystemExit as end:
        return "refused", str(end.code), case.out
    finally:
        case.close()
        OwnSandbox.roots.wipe(60)


def play_child(header, pieces, _child_bytes, _bench):
    """The same for frames of a script's process, taken by one run alone."""
    out = []
    request = {"execution_id": "r1", "timeout_sec": 10, "max_output_bytes": header["max_output"], **header["request"]}
    ends = type("Spare", (), {"socket": sys.stdin, "out_fd": -1, "err_fd": -1, "pid": 0, "pid_fd": -1})
    run = Run(request, ends, 100.0, type("Outbox", (), {"put": lambda _self, line: out.append(line)})())
    for piece in pieces:
        run.take_frames(piece, 101.0)
        held, most = run._lines.held, run._max_line
        if held > most + len(piece) or (held > most and not run.over):
            raise AssertionError(f"{held} bytes of a line are held, {most} are allowed")
        if run.over:  # it is read no further
            break
        run.take_output(run.streams[0], piece)
    run.take_output(run.streams[0], b"", final=True)
    run.status = 0
    run.send_final_error()
    sent = b"".join(out)
    counted = sum(len(line) for line in out if not line.startswith((b'{"type":"stdout"', b'{"type":"tool_call"')))
    if counted > header["max_output"] + 4096 and not header["request"].get("check"):
        raise AssertionError(f"{counted} bytes went to the host, {header['max_output']} are allowed")
    return "ended", "", sent


def play_lines(_header, pieces, _child_bytes, _bench):
    """The lines that come of these pieces, each with its newline."""
    buffer = channel.LineBuffer()
    lines = [line + b"\n" for piece in pieces for line in buffer.push(piece)]
    whole = b"".join(pieces)
    if buffer.held != len(whole) - whole.rfind(b"\n") - 1:
        raise AssertionError(f"{buffer.held} bytes are said to be held")
    return "ended", "", b"".join(lines)


PLAYS = {"broker": play_broker, "child": play_child, "lines": play_lines}


def _raise_hang(*_):
    raise Hang


def _end(code):
    raise Ended(code)


def _refuse_to_kill(*_):
    raise AssertionError("something is to be killed")


def memory():
    """Resident bytes after Python and the allocator have released free memory."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:  # glibc keeps free memory: 10 to 20 MiB of it, in no order, after large lines
        trim(0)
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def main():
    read, write = sys.stdin.buffer, sys.stdout.buffer
    bench = Bench()
    for number in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(number, _raise_hang)
    os._exit, os.kill, os.killpg = _end, _refuse_to_kill, _refuse_to_kill
    try:
        while line := read.readline():
            header = json.loads(line)
            if header["play"] == "memory":
                answer = {"outcome": "ended", "message": str(memory()), "size": 0}
                sent = b""
            else:
                pieces = [read.read(size) for size in header["pieces"]]
                child_bytes = read.read(header["child"])
                signal.alarm(CASE_SEC)
                signal.setitimer(signal.ITIMER_PROF, CASE_CPU_SEC)
                try:
                    outcome, message, sent = PLAYS[header["play"]](header, pieces, child_bytes, bench)
                except Exception:
                    outcome, message, sent = "crash", traceback.format_exc(), b""
                except Hang:
                    outcome, message, sent = "hang", traceback.format_exc(), b""
                signal.alarm(0)
                signal.setitimer(signal.ITIMER_PROF, 0)
                answer = {"outcome": outcome, "message": message, "size": len(sent)}
            write.write(json.dumps(answer).encode() + b"\n" + sent)
            write.flush()
    finally:
        bench.close()


if __name__ == "__main__":
    main()
