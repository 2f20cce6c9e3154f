"""Activities that work on files."""

from ..caps import INPUT_WINDOW_BYTES
from ..wire import encode
from .activity import Activity
from .files import Files
from .pack import PackReader, PackWriter
from .paths import FileError, as_file_error


class Job(Activity):
    """Work in steps, between which the loop continues. `steps()` yields None to pause, bytes for the stream `file`, or a frame, and
    returns the result."""

    def __init__(self, workspace, frame):
        super().__init__(workspace, frame)
        self._credit = frame.get("window", 0)

    def begin(self):
        """Begins in the next turn of the loop."""
        self.workspace.add_job(self, self._work())

    def can_send(self):
        """True if the host accepts more output."""
        return self._credit > 0 or "window" not in self.frame

    def take_credit(self, stream, count):
        self._credit += count

    def steps(self):
        """Yields the steps described at the class."""
        raise NotImplementedError

    def _work(self):
        try:
            steps = self.steps()
            while True:
                try:
                    step = next(steps)
                except StopIteration as end:
                    self.finish(result=end.value)
                    return
                if isinstance(step, bytes):
                    self._credit -= len(step)
                    self.workspace.channel.send_payload(self.id_json, b"file", step)
                elif step is not None:
                    line = encode({"type": step.pop("type"), "execution_id": self.id, **step})
                    self._credit -= len(line)
                    self.workspace.channel.outbox.put(line)
                yield
        except FileError as error:
            self.finish(error={"code": error.code, "message": str(error)})
        except OSError as error:
            found = as_file_error(error, self.frame.get("path", ""))
            self.finish(error={"code": found.code, "message": str(found)})


class FilesRead(Job):
    """Sends files as a pack."""

    def steps(self):
        asked = self.frame
        pack = PackReader(self.workspace.directory, asked["paths"], asked["max_file_bytes"], asked["max_total_bytes"])
        yield from pack.chunks()


class FileList(Job):
    """Lists the entries below a directory."""

    def steps(self):
        asked = self.frame
        listing = Files(self.workspace.directory).list(asked["path"], asked["patterns"], asked["max_entries"], asked["hidden"], asked["follow"])
        while True:
            try:
                entries = next(listing)
            except StopIteration as end:
                return end.value
            yield None if entries is None else {"type": "entries", "entries": entries}


class FileDigest(Job):
    """Computes the digest of a file or a directory."""

    def steps(self):
        return (yield from Files(self.workspace.directory).digest(self.frame["path"]))


class FileRemove(Job):
    """Removes a file or a directory."""

    def steps(self):
        yield from Files(self.workspace.directory).remove(self.frame["path"], self.frame["recursive"])


class FileStat(Job):
    """Describes the entry of a path."""

    def steps(self):
        return Files(self.workspace.directory).stat(self.frame["path"])
        yield


class FileMake(Job):
    """Creates a directory."""

    def steps(self):
        return Files(self.workspace.directory).make(self.frame["path"], self.frame["mode"])
        yield


class FilesWrite(Activity):
    """Receives files as a pack."""

    def __init__(self, workspace, frame):
        super().__init__(workspace, frame)
        self._writer = PackWriter(workspace.directory)
        self._ungranted = 0

    def begin(self):
        """Waits for input."""

    def put_input(self, data):
        try:
            self._writer.feed(data)
        except FileError as error:
            self._fail(error)
            return
        except OSError as error:
            self._fail(as_file_error(error, ""))
            return
        self._ungranted += len(data)
        if self._ungranted >= INPUT_WINDOW_BYTES // 4:
            self.grant_input(self._ungranted)
            self._ungranted = 0

    def end_input(self):
        try:
            self._writer.finish()
        except FileError as error:
            self._fail(error)
            return
        self.finish(result=self._result())

    def cancel(self):
        self._writer.abort()
        super().cancel()

    def _fail(self, error):
        self._writer.abort()
        self.finish(error={"code": error.code, "message": str(error)}, result=self._result())

    def _result(self):
        return {"files": self._writer.files, "bytes": self._writer.bytes}
