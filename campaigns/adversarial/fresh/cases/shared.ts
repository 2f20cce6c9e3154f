import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { defineTool, type Tool } from '../../../../src/tools/index.ts'
import type { FreshCase } from '../fresh-case.ts'

const LOCAL: readonly ['local'] = ['local']

/** The state that the host observed while a script waited. */
const seen = { lockStatus: null as number | null, ptys: 0 }

/** Checks for a pair of a pid and an inode number. */
function isPair(data: unknown): boolean {
  return Array.isArray(data) && data.length === 2 && data.every((one) => Number.isInteger(one))
}

/** Makes the tool `look`, by which a script lets the host act while it holds something. */
function looks(act: () => void): { readonly tools: readonly Tool[] } {
  return {
    tools: [defineTool({ name: 'look', description: 'Acts on the host.', input: { type: 'object' }, execute: act })],
  }
}

/**
 * Attacks that succeed because the local engine shares resources with its host, as SECURITY.md says. A case fails when
 * its attack no longer succeeds: SECURITY.md must then change as well.
 */
export const SHARED: readonly FreshCase[] = [
  {
    id: 'SHARE-01',
    claim: 'it sees what is opened there',
    finding: 'inotify on /usr tells which files the host opens there, and so which programs it starts',
    title: 'watches /usr/bin while the host starts a program',
    engines: LOCAL,
    options: looks(() => void execFileSync('/usr/bin/getent', ['passwd', 'root'])),
    script: String.raw`
import select
watch = libc.inotify_init1(0)
libc.inotify_add_watch(watch, b"/usr/bin", 0x20)
look()
names, until = set(), time.time() + 5
while "getent" not in names and time.time() < until:
    if select.select([watch], [], [], 0.1)[0]:
        block = os.read(watch, 65536)
        while block:
            size = struct.unpack_from("iIII", block)[3]
            names.add(block[16:16 + size].rstrip(b"\0").decode())
            block = block[16 + size:]
emit_result("getent" in names)
`,
    expected: { status: 'completed', data: true },
  },
  {
    id: 'SHARE-02',
    claim: 'holds advisory locks that others observe',
    finding: 'advisory locks on files and devices that are mounted are those of the host and of all other sandboxes',
    title: 'locks a file of /usr: the host does not get that lock meanwhile',
    engines: LOCAL,
    options: looks(() => {
      seen.lockStatus = spawnSync('flock', ['--nonblock', '/usr/bin/env', 'true']).status
    }),
    script: String.raw`
fd = os.open("/usr/bin/env", os.O_RDONLY)
fcntl.flock(fd, fcntl.LOCK_EX)
look()
emit_result("held")
`,
    expected: { status: 'completed', data: 'held' },
    host: () => assert.equal(seen.lockStatus, 1),
  },
  {
    id: 'SHARE-03',
    claim: 'One script can take all pseudoterminals that are not reserved',
    finding: 'pseudoterminals are counted for the whole machine: a script can take all that are not reserved (3,071)',
    title: 'takes 300 pseudoterminals, which have one limit for the whole machine',
    engines: LOCAL,
    options: looks(() => {
      seen.ptys = Number(readFileSync('/proc/sys/kernel/pty/nr', 'utf8'))
    }),
    script: String.raw`
keep = [os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY) for _ in range(300)]
look()
emit_result(len(keep))
`,
    expected: { status: 'completed', data: 300 },
    host: () => assert.ok(seen.ptys >= 300, `${seen.ptys} pseudoterminals`),
  },
  {
    id: 'SHARE-04',
    claim: 'the numbers of processes and inodes continue from run to run',
    finding: 'the numbers of processes and inodes continue from run to run',
    title: 'tells the next run a number by how many processes it starts',
    engines: LOCAL,
    script: `
for _ in range(40): in_child(lambda: None)
emit_result([os.getpid(), os.stat(os.memfd_create("x")).st_ino])
`,
    expected: { status: 'completed', data: { asymmetricMatch: isPair } },
    next: 'emit_result([os.getpid(), os.stat(os.memfd_create("x")).st_ino])',
    expectedNext: { status: 'completed', data: { asymmetricMatch: isPair } },
    host: ({ first, second }) => {
      const [before, after] = [first, second].map((run) => run?.result?.finalData as [number, number])
      assert.ok((after?.[0] ?? 0) > (before?.[0] ?? 0) + 40)
      assert.notEqual(after?.[1], before?.[1])
    },
  },
  {
    id: 'SHARE-05',
    claim: "`/proc` shows the kernel's command line, the boot's id, disks and interrupts",
    finding: "more of /proc is about the whole machine: the kernel's command line, boot id, disks, interrupts, modules",
    title: 'reads data of the machine in /proc',
    engines: LOCAL,
    script: String.raw`
names = ["cmdline", "version", "cpuinfo", "uptime", "diskstats", "partitions", "interrupts", "softirqs", "vmstat", "zoneinfo", "buddyinfo", "swaps", "devices", "misc", "filesystems", "pressure/cpu", "sys/kernel/random/boot_id", "cgroups", "locks"]
emit_result([name for name in names if isinstance(tried(lambda: len(open("/proc/" + name).read())), int)])
`,
    expected: { status: 'completed', data: { asymmetricMatch: Array.isArray } },
    host: ({ first }) => {
      const shown = first.result?.finalData as string[]
      const named = ['cmdline', 'sys/kernel/random/boot_id', 'diskstats', 'interrupts']
      assert.deepEqual(
        named.filter((name) => !shown.includes(name)),
        [],
      )
    },
  },
]
