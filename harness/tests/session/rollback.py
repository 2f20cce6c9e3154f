"""Runs cells and rolls them back with plain forks, as a session does, but without a sandbox."""

import json
import os
import signal
import time

from sandglass_harness.session import cells, descriptors, grades, own_files, repairs

from .. import forked


def after_rollback(before, bad, after, between="", removes=True):
    """Runs the cells of `before`, forks a copy, runs `between` outside of a cell and `bad` in the origin, and kills it. The copy then
    repairs itself, where `removes` as if nothing else could write to files, and runs `after`. Returns (values of `after` as text, sentences of the repairs, [grade, lacks] before the fork)."""
    return forked.call(_play, before, bad, after, between, removes)


def _play(before, bad, after, between, removes):
    namespace = cells.Namespace({})
    os.setpgid(0, 0)
    of_test = {each.fd for each in descriptors.note()}
    for number, source in enumerate(before, 1):
        cells.run(source, number, namespace)
    grade = grades.find()
    noted = repairs.note(namespace)
    noted.opened = [each for each in noted.opened if each.fd not in of_test]
    read, write = os.pipe()
    opened, is_opened = os.pipe()
    origin = os.getpid()
    if os.fork():
        try:
            os.read(opened, 1)  # the copy has its files
            exec(between, namespace.scope)
            os.write(write, json.dumps(descriptors.find_changed(noted.opened)).encode())
            cells.run(bad, 50, namespace)
        except BaseException as error:
            print(error)
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    os.setpgid(0, 0)
    own_files.make_own(noted.opened)
    os.write(is_opened, b"1")
    os.close(write)
    with open(read) as changes:  # ends with the origin
        changed = json.loads(changes.read())
    try:
        os.killpg(origin, signal.SIGKILL)  # processes that the cells have started
    except ProcessLookupError:
        pass
    while os.getppid() == origin:  # whose locks on files end after the pipe
        time.sleep(0.000_1)
    words = repairs.apply(noted, namespace, changed, removes)
    return [_value(source, number, namespace) for number, source in enumerate(after, 51)], words, grade


def _value(source, number, namespace):
    try:
        value = cells.run(source, number, namespace)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None if value is cells.NOTHING else repr(value)
