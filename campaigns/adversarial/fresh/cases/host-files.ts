import { type FreshCase, LINUX } from '../fresh-case.ts'

const ROOTS = 'a mount namespace of its own with `/usr` read-only'
const NOTHING_OF = 'nothing of `/home`, `/root`, `/var`, `/run`'
const OWNS_NOTHING = 'as root, a real uid that owns nothing'

/** Attacks that read, write, link or lock files of the host, or look for them. */
export const HOST_FILES: readonly FreshCase[] = [
  {
    id: 'HOST-01',
    claim: 'four sized tmpfs',
    title: 'walks the whole tree: only the four documented directories are writable',
    engines: LINUX,
    script: String.raw`
found = []
for at, names, _ in os.walk("/", onerror=lambda _: None):
    deep = at.count("/") > 2 and at.startswith("/usr")
    names[:] = [] if deep else [name for name in names if not (at == "/" and name in ("proc", "sys"))]
    if os.access(at, os.W_OK) and "done" == tried(lambda: os.close(os.open(at, os.O_TMPFILE | os.O_RDWR))):
        found.append(at)
emit_result(sorted(found))
`,
    expected: { status: 'completed', data: ['/dev/shm', '/tmp', '/var/tmp', '/workspace'] },
    options: { limits: { executionTimeoutSec: 60 } },
  },
  {
    id: 'HOST-02',
    claim: NOTHING_OF,
    title: 'looks for the host behind /proc/self/root, /proc/1/root, cwd, descriptors of directories and ..',
    engines: LINUX,
    script: String.raw`
path = "@@CANARY_FILE@@"
ways = [path, "/proc/self/root" + path, "/proc/1/root" + path, f"/proc/{zygote()}/root" + path, f"/proc/{zygote()}/cwd" + path, "/.." * 40 + path, "/proc/thread-self/root/../.." + path]
top = os.open("/", os.O_PATH | os.O_DIRECTORY)
came = [tried(os.open, way, os.O_RDONLY) for way in ways]
came.append(tried(os.open, "../../../.." + path, os.O_RDONLY, dir_fd=top))
os.chdir("/")
came.append(tried(os.fchdir, top))
came.append(tried(os.chroot, "/tmp"))
emit_result(came)
`,
    expected: {
      status: 'completed',
      data: ['ENOENT', 'ENOENT', 'EACCES', 'EACCES', 'EACCES', 'ENOENT', 'ENOENT', 'ENOENT', 'done', 'EPERM'],
    },
  },
  {
    id: 'HOST-03',
    claim: 'and sets the times of the nodes of `/dev` to now',
    finding: "the nodes of /dev are the host's on the local engine, and who may write one may set its times to now",
    title: 'changes the times and modes of the device nodes, which are inodes of the host on the local engine',
    engines: LINUX,
    script: String.raw`
nodes = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"]
emit_result({node: [tried(os.utime, node), tried(os.chmod, node, 0o666), tried(os.chown, node, 1000, 1000), tried(os.setxattr, node, "user.x", b"1")] for node in nodes})
`,
    expected: {
      status: 'completed',
      data: Object.fromEntries(
        ['null', 'zero', 'full', 'random', 'urandom', 'tty'].map((node) => [
          `/dev/${node}`,
          ['done', 'EPERM', 'EPERM', 'EPERM'],
        ]),
      ),
    },
  },
  {
    id: 'HOST-04',
    claim: OWNS_NOTHING,
    title: 'makes device nodes, and opens devices of the machine by their usual names',
    engines: LINUX,
    script: String.raw`
made = [tried(os.mknod, f"/tmp/{kind}-{major}", mode, os.makedev(major, minor)) for kind, mode, major, minor in (("b", stat.S_IFBLK | 0o666, 254, 0), ("b", stat.S_IFBLK | 0o666, 8, 0), ("c", stat.S_IFCHR | 0o666, 1, 1), ("c", stat.S_IFCHR | 0o666, 1, 11))]
names = ["mem", "kmem", "port", "kmsg", "fuse", "kvm", "vda", "sda", "loop0", "loop-control", "net/tun", "vsock", "vhost-vsock", "userfaultfd", "cpu/0/msr", "mapper/control", "input/event0", "mqueue", "hugepages"]
emit_result([made, sorted({tried(os.open, "/dev/" + name, os.O_RDONLY) for name in names if name != "mqueue"})])
`,
    expected: { status: 'completed', data: [['EPERM', 'EPERM', 'EPERM', 'EPERM'], ['ENOENT']] },
  },
  {
    id: 'HOST-05',
    claim: ROOTS,
    title: 'writes to a mapped program of /usr through /proc/self/mem and by mprotect',
    engines: LINUX,
    script: String.raw`
import mmap
path = os.path.realpath(sys.executable)
before = open(path, "rb").read(4096)
fd = os.open(path, os.O_RDONLY)
shared = tried(lambda: mmap.mmap(fd, 4096, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE) and "done")
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
at = libc.mmap(None, 4096, 1, 1, fd, 0)
more = libc.mprotect(ctypes.c_void_p(at), 4096, 3)
def poke():
    with open("/proc/self/mem", "r+b", buffering=0) as memory:
        memory.seek(at)
        memory.write(b"changed")
emit_result([shared, more, tried(poke), open(path, "rb").read(4096) == before, tried(os.open, path, os.O_WRONLY), tried(os.open, path, os.O_RDONLY | os.O_TRUNC)])
`,
    expected: { status: 'completed', data: ['EACCES', -1, 'EIO', true, 'EACCES', 'EROFS'] },
  },
  {
    id: 'HOST-06',
    claim: ROOTS,
    title: 'hard-links, renames and reflinks files of /usr into its own directories',
    engines: LINUX,
    script: String.raw`
path = os.path.realpath(sys.executable)
fd = os.open(path, os.O_RDONLY)
new = os.open("/tmp/new", os.O_CREAT | os.O_RDWR)
emit_result([tried(os.link, path, "/tmp/x"), tried(os.link, f"/proc/self/fd/{fd}", "/tmp/y", follow_symlinks=True), tried(os.rename, path, "/tmp/z"), tried(fcntl.ioctl, new, 0x40049409, fd), sorted(os.listdir("/tmp"))])
`,
    expected: { status: 'completed', data: ['EXDEV', 'EXDEV', 'EXDEV', 'EXDEV', ['new']] },
  },
  {
    id: 'HOST-07',
    claim: OWNS_NOTHING,
    title: 'takes leases on files that the host may want to write',
    engines: LINUX,
    script: String.raw`
paths = [os.path.realpath(sys.executable), "/etc/ld.so.cache", "/etc/passwd", emit_result.__code__.co_filename]
there = [path for path in paths if os.path.exists(path)]
emit_result([len(there) > 1, sorted({tried(fcntl.fcntl, os.open(path, os.O_RDONLY), fcntl.F_SETLEASE, kind) for path in there for kind in (fcntl.F_RDLCK, fcntl.F_WRLCK)})])
`,
    expected: { status: 'completed', data: [true, ['EACCES']] },
  },
  {
    id: 'HOST-08',
    claim: ROOTS,
    title: 'tries to write each file below /proc/sys, and those of /proc that govern the machine',
    engines: LINUX,
    script: String.raw`
opened = []
for top in ("/proc/sys", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi", "/proc/scsi", "/sys"):
    for at, _, names in os.walk(top):
        for name in names:
            path = at + "/" + name
            if tried(lambda: os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))) == "done":
                opened.append(path)
machine = ["sysrq-trigger", "kcore", "kmsg", "mtrr", "timer_list", "slabinfo", "pagetypeinfo", "kpagecount", "kpageflags", "latency_stats"]
emit_result([opened, [name for name in machine if not stat.S_ISCHR(os.stat("/proc/" + name).st_mode if os.path.exists("/proc/" + name) else 0) and tried(lambda: os.close(os.open("/proc/" + name, os.O_RDWR))) == "done"]])
`,
    expected: { status: 'completed', data: [[], []] },
  },
  {
    id: 'HOST-09',
    claim: OWNS_NOTHING,
    title: 'looks for addresses of the kernel: kallsyms, iomem, pagemap, wchan, stack, syscall',
    engines: LINUX,
    script: String.raw`
def zero(path, column):
    values = {line.split()[column].split("-")[0] for line in open(path)}
    return {value.strip("0") for value in values} == {""}
page = ctypes.create_string_buffer(b"here", 4096)
with open("/proc/self/pagemap", "rb") as pagemap:
    pagemap.seek(ctypes.addressof(page) // 4096 * 8)
    frame = int.from_bytes(pagemap.read(8), "little") & ((1 << 55) - 1)
emit_result([tried(zero, "/proc/kallsyms", 0), tried(zero, "/proc/iomem", 0), frame, tried(os.open, "/proc/1/stack", os.O_RDONLY), tried(os.open, "/proc/1/syscall", os.O_RDONLY), tried(lambda: os.read(os.open("/proc/self/stack", os.O_RDONLY), 10))])
`,
    expected: { status: 'completed', data: [true, true, 0, 'EACCES', 'EACCES', 'EACCES'] },
  },
  {
    id: 'HOST-10',
    claim: NOTHING_OF,
    title: 'names host files by handle, by mount id and by an automount',
    engines: LINUX,
    script: String.raw`
handle = ctypes.create_string_buffer(struct.pack("<Ii", 128, 0), 160)
mount = ctypes.c_int()
emit_result([
    call((303, 264), -100, b"/usr", handle, ctypes.byref(mount), 0),
    call((304, 265), -100, handle, 0),
    call(428, -100, b"/usr", 1),
    call(429, -100, b"/usr", -100, b"/tmp", 0),
    call((165, 40), b"/proc", b"/tmp", b"proc", 0, 0),
    call((166, 39), b"/usr", 2),
    call(430, b"tmpfs", 0),
])
`,
    expected: { status: 'completed', data: Array<unknown>(7).fill('EPERM') },
  },
]
