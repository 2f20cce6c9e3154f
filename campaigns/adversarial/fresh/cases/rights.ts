import { type FreshCase, LINUX } from '../fresh-case.ts'

const RIGHTS =
  'no capabilities, `no_new_privs`, no set-uid effect, no further user namespaces, mounts and namespaces refused'
const FILTER = "in force in every process that can run a script's code"

/** Attacks on privileges and on rarely used interfaces of the kernel. */
export const RIGHTS_CASES: readonly FreshCase[] = [
  {
    id: 'RIGHT-01',
    claim: RIGHTS,
    title: 'makes every kind of namespace by unshare, clone, clone3, and enters those that are there',
    engines: LINUX,
    script: String.raw`
flags = [0x80, 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000]
came = [call((272, 97), flag) for flag in flags]
came += [call((56, 220), flag | 17, 0, 0, 0, 0) for flag in flags[1:]]
came += [call((308, 268), os.open("/proc/self/ns/" + name, os.O_RDONLY), 0) for name in ("user", "mnt", "net", "pid", "ipc", "uts", "cgroup")]
emit_result([sorted(set(came)), call(435, ctypes.create_string_buffer(88), 88)])
`,
    expected: { status: 'completed', data: [['EPERM'], 'ENOSYS'] },
  },
  {
    id: 'RIGHT-02',
    claim: RIGHTS,
    title: 'takes ids, capabilities, groups and secure bits',
    engines: LINUX,
    script: String.raw`
caps = {line.split()[0]: line.split()[1].strip("0") for line in open("/proc/self/status") if line.startswith(("Cap", "NoNewPrivs"))}
head = ctypes.create_string_buffer(struct.pack("<Ii", 0x20080522, 0))
data = ctypes.create_string_buffer(struct.pack("<6I", *[0xFFFFFFFF] * 6))
emit_result([caps, [*["refused" if tried(*one) in ("EPERM", "EINVAL") else "got" for one in ((os.setuid, 0), (os.setresuid, 0, 0, 0), (os.setgid, 0))], tried(os.setgroups, [0]), call((126, 91), head, data), call((157, 167), 28, 1, 0, 0, 0), call((157, 167), 47, 2, 21, 0, 0), call((157, 167), 38, 0, 0, 0, 0)]])
`,
    expected: {
      status: 'completed',
      data: [
        { 'CapInh:': '', 'CapPrm:': '', 'CapEff:': '', 'CapBnd:': '', 'CapAmb:': '', 'NoNewPrivs:': '1' },
        ['refused', 'refused', 'refused', 'EPERM', 'EPERM', 'EPERM', 'EPERM', 'EINVAL'],
      ],
    },
  },
  {
    id: 'RIGHT-03',
    claim: RIGHTS,
    title: 'runs the set-uid programs of /usr, and a set-uid copy of Python of its own',
    engines: LINUX,
    script: String.raw`
import shutil, subprocess
found = []
for at, inner, names in os.walk("/usr"):
    inner[:] = [name for name in inner if at != "/usr" or name in ("bin", "sbin", "libexec")]
    for name in names:
        try:
            if os.stat(at + "/" + name).st_mode & (stat.S_ISUID | stat.S_ISGID):
                found.append(at + "/" + name)
        except OSError:
            pass
copy = "/tmp/python"
shutil.copy(os.path.realpath(sys.executable), copy)
os.chmod(copy, 0o6755)
out = subprocess.run([copy, "-I", "-S", "-c", "import os; print(os.getresuid(), os.getresgid(), [l for l in open('/proc/self/status') if l.startswith(('CapEff', 'Seccomp:', 'NoNewPrivs'))])"], capture_output=True, text=True)
mine = str(os.getresuid()) + " " + str(os.getresgid())
su = [path for path in found if path.endswith(("/su", "/mount"))]
ran = [subprocess.run([path, "--version"], capture_output=True).returncode in (0, 1) for path in su]
emit_result([out.stdout.startswith(mine) or out.stderr[-200:], "'NoNewPrivs:\\t1\\n'" in out.stdout, "'Seccomp:\\t2\\n'" in out.stdout, tried(os.setxattr, copy, "security.capability", b"\1\0\0\2\xff\xff\xff\xff\0\0\0\0\xff\xff\xff\xff\0\0\0\0")])
`,
    expected: { status: 'completed', data: [true, true, true, 'EPERM'] },
  },
  {
    id: 'RIGHT-04',
    claim: FILTER,
    title: 'bypasses the filter by x32 and 32-bit calls in its own machine code',
    engines: LINUX,
    script: String.raw`
import mmap
def x32():
    libc.syscall(ctypes.c_long(0x40000000 + 39))
def int80():
    page = mmap.mmap(-1, 4096, prot=7)
    page.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
    ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
def linux32():
    libc.personality(8)
    int80()
emit_result([in_child(x32), in_child(int80), in_child(linux32)] if os.uname().machine == "x86_64" else [-31] * 3)
`,
    expected: { status: 'completed', data: [-31, -31, -31] },
  },
  {
    id: 'RIGHT-05',
    claim: FILTER,
    title: 'answers its own refused calls by a seccomp listener that says "go on"',
    engines: LINUX,
    script: String.raw`
import threading
libc.prctl(38, 1, 0, 0, 0)
code = [(0x20, 0, 0, 0), (0x15, 0, 1, 165 if os.uname().machine == "x86_64" else 40), (0x06, 0, 0, 0x7FC00000), (0x06, 0, 0, 0x7FFF0000)]
packed = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *one) for one in code))
class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))
program = Program(len(code), ctypes.addressof(packed))
listener = call((317, 277), 1, 8, ctypes.byref(program))
came = call((165, 40), b"/proc", b"/tmp", b"proc", 0, 0)
emit_result([listener, came, call((157, 167), 22, 0, 0, 0, 0), call((317, 277), 0, 0, 0)])
`,
    expected: { status: 'completed', data: ['EINVAL', 'EPERM', 'EINVAL', 'EINVAL'] },
  },
  {
    id: 'RIGHT-06',
    claim: FILTER,
    title: 'starts programs from memory, by vfork, posix_spawn and a shell: each has the filter',
    engines: LINUX,
    script: String.raw`
import subprocess
program = os.memfd_create("program", 0)
os.write(program, open(os.path.realpath(sys.executable), "rb").read())
code = "import socket\ntry: socket.socket(16, 3)\nexcept OSError as error: print(error.errno)\nprint([l.split()[1] for l in open('/proc/self/status') if l.startswith(('Seccomp:', 'NoNewPrivs', 'CapEff'))])"
def out(command, **more):
    return subprocess.run(command, capture_output=True, text=True, **more).stdout.split("\n")[:2]
r, w = os.pipe()
pid = os.posix_spawn(sys.executable, [sys.executable, "-I", "-S", "-c", code], {}, file_actions=[(os.POSIX_SPAWN_DUP2, w, 1)])
os.waitpid(pid, 0)
ways = [out([f"/proc/self/fd/{program}", "-I", "-S", "-c", code], pass_fds=[program], executable=f"/proc/self/fd/{program}", env={"PYTHONHOME": sys.prefix, "LD_LIBRARY_PATH": "/usr/local/lib"}), out([sys.executable, "-I", "-S", "-c", code], close_fds=False), out(["/bin/sh", "-c", "exec " + sys.executable + ' -I -S -c "$0"', code]), os.read(r, 1000).decode().split("\n")[:2]]
emit_result(ways)
`,
    expected: { status: 'completed', data: Array<unknown>(4).fill(['97', "['0000000000000000', '1', '2']"]) },
  },
  {
    id: 'RIGHT-07',
    claim: 'reach kernel doors seldom used',
    title: 'repeats the refused calls of docs/system-calls.md with arguments that the kernel would accept',
    engines: LINUX,
    script: String.raw`
params = ctypes.create_string_buffer(256)
emit_result(sorted({
    call(425, 1, params), call(426, 0, 1, 0, 0, 0, 0), call((321, 280), 0, params, 120), call((298, 241), params, 0, -1, -1, 0),
    call((323, 282), 1), call((250, 219), 1, b"x"), call((248, 217), b"user", b"a", b"b", 1, -3), call((249, 218), b"user", b"a", 0, -3),
    call((300, 262), 0x200, 0), call((103, 116), 3, params, 256), call((163, 89), b"/tmp/acct"), call((167, 224), b"/tmp/x", 0),
    call((153, 58)), call((179, 60), 0x800002, 0, 0, 0), call((175, 105), params, 1, b""), call((246, 104), 0, 0, 0, 0),
}))
`,
    expected: { status: 'completed', data: ['EPERM'] },
  },
  {
    id: 'RIGHT-08',
    claim: 'no set-uid effect',
    title: 'lowers its oom_score_adj, raises hard limits, real-time priority and locked memory',
    engines: LINUX,
    script: String.raw`
def write(path, value):
    with open(path, "w") as file:
        file.write(value)
emit_result([
    tried(write, "/proc/self/oom_score_adj", "-1000"),
    tried(resource.setrlimit, resource.RLIMIT_NOFILE, (1 << 20, 1 << 20)),
    tried(resource.setrlimit, resource.RLIMIT_CORE, (1, 1)),
    tried(resource.setrlimit, resource.RLIMIT_MSGQUEUE, (1, 1)),
    tried(os.setpriority, os.PRIO_PROCESS, 0, -1),
    tried(os.sched_setscheduler, 0, os.SCHED_FIFO, os.sched_param(1)),
    call((149, 228), ctypes.create_string_buffer(1 << 20), 1 << 20),
    tried(os.sethostname if hasattr(os, "sethostname") else socket.sethostname, "x"),
])
`,
    expected: {
      status: 'completed',
      data: ['EACCES', 'ValueError', 'ValueError', 'ValueError', 'EACCES', 'EPERM', 'ENOMEM', 'EPERM'],
    },
  },
]
