"""Repairs the event loops of asyncio in a copy of a process. A fork shares their selectors with its origin, and the pipes and
sockets of a copy are closed."""

import os
import signal
import sys
import types

_names_of, _mro_of = type.__dict__["__dict__"].__get__, type.__dict__["__mro__"].__get__
MAX_ATTRIBUTES = 100  # of an object in which an event loop is looked for


def find_replaced(namespace):
    """Returns the descriptors of sockets that repair() recreates."""
    try:
        loops = _find(namespace)
    except Exception:  # an object of a cell
        return set()
    return {end.fileno() for loop in loops for end in (getattr(loop, "_ssock", None), getattr(loop, "_csock", None)) if end is not None}


def repair(namespace, opened, ends):
    """Gives event loops a new selector and self-pipe. `opened` are the noted descriptors of the origin, `ends` the exit codes of its
    child processes, or the errors of their use. Returns messages about what is lost."""
    messages, ended = [], _find_waiting_threads()
    for loop in _find(namespace):
        if isinstance(loop, sys.modules["asyncio"].SelectorEventLoop):
            messages += _repair(loop, {each.fd for each in opened if not each.is_here()}, ends, ended)
        else:
            if loop is namespace.idle_loop:
                namespace.forget_loop()
            messages.append(f"an event loop of {type(loop).__module__}: its tasks are lost")
    for loop, pid, callback, arguments in ended:
        if pid in ends and not loop.is_closed():
            _end_process(pid, ends[pid], callback, arguments)
    return messages


def _find(namespace):
    """Returns the open event loops of the session, of its variables and of their attributes, such as those of asyncio.Runner."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return []
    base, values = asyncio.AbstractEventLoop, list(namespace.scope.values())
    attributes = [each for value in values for each in _attributes_of(value)]
    found = [namespace.idle_loop, *(value for value in [*values, *attributes] if issubclass(type(value), base))]
    return [loop for loop in {id(each): each for each in found if each is not None}.values() if not loop.is_closed()]


def _attributes_of(value):
    """Returns the attributes of an object without calling its methods or properties."""
    if issubclass(type(value), (type, types.ModuleType)):
        return ()
    places = (_names_of(kind).get("__dict__") for kind in _mro_of(type(value)))
    place = next((each for each in places if each is not None), None)
    if type(place) is not types.GetSetDescriptorType:
        return ()
    found = place.__get__(value)
    return list(found.values()) if type(found) is dict and len(found) <= MAX_ATTRIBUTES else ()


def _find_waiting_threads():
    """Returns (loop, pid, callback, arguments of the callback) of each lost thread of asyncio that waited for a child process."""
    threads = list(getattr(sys.modules.get("threading"), "_dangling", ()))
    return [thread._args for thread in threads if getattr(getattr(thread, "_target", None), "__name__", None) == "_do_waitpid"]


def _end_process(pid, end, callback, arguments):
    """Tells asyncio that a child process has ended, or lets its use raise the error `end`."""
    if isinstance(end, int):
        callback(pid, end, *arguments)
        return

    async def _wait():
        raise end

    transport = arguments[0]
    transport._wait = _wait
    for waiter in transport._exit_waiters or ():
        if not waiter.done():
            waiter.set_exception(end)


def _repair(loop, closed, ends, ended):
    """Repairs a loop of a process whose descriptors `closed` are sockets without a peer. Such a socket is always ready: a callback
    that does not stop at its end would be called without a pause. Adds to `ended` the child processes that the loop waited for."""
    old, loop._selector = loop._selector, type(loop._selector)()  # not unregistered, because the other process may still use it
    lost = []
    for key in list(old.get_map().values()):
        if key.fd in closed and not _stops_at_end(loop, key.data):
            lost.append(key)
            continue
        reader = key.data[0]
        if getattr(reader and reader._callback, "__name__", None) == "_do_wait" and reader._args[0] in ends:  # for a pidfd
            pid, pidfd, callback, arguments = reader._args
            os.close(pidfd)
            ended.append((loop, pid, callback, arguments))
            continue
        try:
            loop._selector.register(key.fileobj, key.events, key.data)
        except (OSError, ValueError):
            continue
    old.close()
    loop._close_self_pipe()
    loop._make_self_pipe()
    if loop._signal_handlers:
        signal.set_wakeup_fd(loop._csock.fileno())
    return list(dict.fromkeys(_end(key) for key in lost))


def _stops_at_end(loop, handles):
    """True if asyncio itself reads or writes a stream there: it sees the end, and tells the tasks that wait."""
    return all(handle is None or _is_stream(_owner_of(handle)) or _is_of_call(loop, handle) for handle in handles)


def _is_stream(owner):
    asyncio = sys.modules["asyncio"]
    return isinstance(owner, (asyncio.ReadTransport, asyncio.WriteTransport)) and not _is_datagram(owner)


def _is_datagram(owner):
    return hasattr(owner, "sendto")  # the class of asyncio does not tell


def _is_of_call(loop, handle):
    """True for the self-pipe, and for methods such as loop.sock_recv()."""
    return _owner_of(handle) is loop and handle._callback.__name__.startswith(("_sock_", "_read_from_self"))


def _end(key):
    """Ends what was served or read at a closed descriptor. Returns a message about it."""
    handles = [handle for handle in key.data if handle is not None]
    servers = [each for handle in handles for each in handle._args or () if isinstance(each, sys.modules["asyncio"].AbstractServer)]
    for server in servers:
        server.close()  # also ends serve_forever()
    for owner in map(_owner_of, handles):
        if _is_datagram(owner):
            owner.abort()
    return "a server of asyncio is closed" if servers else f"callbacks of an event loop for descriptor {key.fd} are removed"


def _owner_of(handle):
    return getattr(handle._callback, "__self__", None)
