import { type FreshCase, LINUX } from '../fresh-case.ts'

const LEFT = 'leave data behind'

/** Python that leaves descriptors in the queues of two sockets that refer to each other, so that no process holds them. */
const SEND_OFF = String.raw`
def send_off(fds):
    a, b = socket.socketpair()
    for at in range(0, len(fds), 200):
        socket.send_fds(a, [b"x"], fds[at:at + 200])
    for one in (a, b):
        socket.send_fds(one, [b"x"], [a.fileno(), b.fileno()])
    for fd in fds:
        os.close(fd)
    a.close()
    b.close()
`

/** Descriptors in flight: the kernel collects them some milliseconds after the last process of their run. */
export const IN_FLIGHT: readonly FreshCase[] = [
  {
    id: 'FLIGHT-01',
    claim: LEFT,
    title: 'writes 40 kB into names of sockets that no process holds, and delays their end by large files in flight',
    engines: LINUX,
    options: { limits: { diskBytes: 128 << 20 } },
    script: String.raw`${SEND_OFF}
big = [os.memfd_create("x") for _ in range(16)] + [os.open("big", os.O_CREAT | os.O_RDWR)]
os.unlink("big")
for fd in big:
    os.posix_fallocate(fd, 0, 20 << 20)
named = []
for n in range(400):
    one = socket.socket(socket.AF_UNIX)
    one.bind("\0note%03d" % n + "d" * 95)
    named.append(one.detach())
send_off(big)
send_off(named)
emit_result(len(named))
`,
    expected: { status: 'completed', data: 400 },
    next: String.raw`
emit_result([line for line in open("/proc/net/unix") if "note" in line])
`,
    expectedNext: { status: 'completed', data: [] },
  },
  {
    id: 'FLIGHT-02',
    claim: LEFT,
    title: 'takes the space of every writable directory by deleted files that no process holds',
    engines: LINUX,
    script: String.raw`${SEND_OFF}
for root in ("/workspace", "/tmp", "/var/tmp", "/dev/shm"):
    space = os.statvfs(root)
    fd = os.open(root + "/big", os.O_CREAT | os.O_RDWR)
    os.unlink(root + "/big")
    os.posix_fallocate(fd, 0, space.f_bavail * space.f_bsize * 9 // 10)
    send_off([fd])
emit_result(True)
`,
    expected: { status: 'completed', data: true },
    next: String.raw`
spaces = [os.statvfs(root) for root in ("/workspace", "/tmp", "/var/tmp", "/dev/shm")]
emit_result([space.f_bavail == space.f_blocks for space in spaces])
`,
    expectedNext: { status: 'completed', data: [true, true, true, true] },
  },
]
