import { readlinkSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import type { CgroupHost } from '../../../../src/engines/local/cgroup-host.ts'
import { makeCgroup } from '../../../../src/engines/local/cgroups.ts'
import { localEngine } from '../../../../src/engines/local/index.ts'
import { inspectOutside, NAMESPACES } from '../../../../src/engines/local/outside.ts'
import { resolveLimits, sandboxLimits } from '../../../../src/sandbox/index.ts'
import { requireLocalEngine } from '../../../support/local-engine.ts'
import { openDirectory, scopedDirectory } from '../../../support/engines/local/state-dir.ts'

const { skip } = await requireLocalEngine()
const LIMITS = sandboxLimits(resolveLimits())
const own = process.getuid?.() ?? 0
/** The text that bubblewrap writes to its info descriptor, with these namespaces. */
const formatInfo = (ids: Readonly<Record<string, string>>): string =>
  JSON.stringify(
    Object.fromEntries(Object.entries(ids).map(([name, id]) => [`${name}-namespace`, Number(/\d+/.exec(id)?.[0])])),
  )
const hosts = Object.fromEntries(NAMESPACES.map((name) => [name, readlinkSync(`/proc/self/ns/${name}`)]))

describe('a process that is not in a sandbox', () => {
  test('is reported when it shares any namespace of the host', () => {
    const { namespaces, problems } = inspectOutside({ pid: process.pid, uid: own, info: '{}' })
    expect(namespaces).toEqual([])
    expect(problems).toEqual(NAMESPACES.map((name) => `its ${name} namespace is the host's`))
  })

  test('is reported when it runs as the wrong user', () => {
    const { problems } = inspectOutside({ pid: process.pid, uid: own + 1, info: '{}' })
    expect(problems).toContain(`it runs as uid ${own} and must run as uid ${own + 1}`)
  })

  test('counts as in no namespace when its namespaces cannot be read', () => {
    const { namespaces, problems } = inspectOutside({ pid: 2 ** 22 + 1, uid: own, info: '{}' })
    expect(namespaces).toEqual([])
    expect(problems).toHaveLength(NAMESPACES.length + 1)
  })
})

test('compares the namespaces that bubblewrap reports and the id map when the links cannot be read', () => {
  const closed = (path: string): string => {
    if (path.startsWith('/proc/self/')) return readlinkSync(path)
    throw Object.assign(new Error('closed'), { code: 'EACCES' })
  }
  const given = { pid: process.pid, uid: own, readLink: closed }
  const others = Object.fromEntries(Object.keys(hosts).map((name) => [name, `${name}:[1]`]))
  // The map of this process is the host's, so the user namespace counts as the host's.
  expect(inspectOutside({ ...given, info: formatInfo(others) }).namespaces).toEqual(
    NAMESPACES.filter((name) => name !== 'user'),
  )
  expect(inspectOutside({ ...given, info: formatInfo(hosts) }).problems).toHaveLength(NAMESPACES.length)
  expect(inspectOutside({ ...given, info: '{}' }).problems).toHaveLength(NAMESPACES.length)
})

test('a limit counts as held only while the kernel names the group of the process', async () => {
  using parent = scopedDirectory('group')
  const host: CgroupHost = {
    version: 2,
    enforces: ['memory', 'pids', 'cpu'],
    parents: [{ path: parent.path, controllers: ['memory', 'pids', 'cpu'] }],
    problems: [],
  }
  const group = makeCgroup(host, 'sg-1', LIMITS)
  await group.add(process.pid)
  expect(group.holds(process.pid)).toEqual([]) // a plain directory has no members
  expect(group.holds(process.pid, '0::/user.slice/sandglass/sg-1\n')).toEqual(['memory', 'pids', 'cpu'])
  expect(group.holds(process.pid, '0::/user.slice/sandglass/sg-2\n')).toEqual([])
  expect(group.holds(process.pid, '2:memory:/sandglass/sg-1\n0::/\n')).toEqual([])
})

describe.skipIf(skip)('a sandbox', () => {
  const place = openDirectory('outside')
  afterAll(() => rmSync(place, { recursive: true, force: true }))

  /** A bubblewrap that creates fewer namespaces than requested. */
  const careless = (name: string, kept: string): string => {
    const path = join(place, name)
    const flags = ['user', 'pid', 'net', 'ipc', 'uts', 'cgroup'].filter((one) => one !== kept)
    const program = `#!${realpathSync('/usr/bin/python3')} -I
import os, sys
args = b""
while chunk := os.read(3, 65536):
    args += chunk
words = args.decode().split("\\0")
at = words.index("--unshare-all")
words[at:at + 1] = ${JSON.stringify(flags.map((one) => `--unshare-${one}`))}
if ${kept === 'uts' ? 'True' : 'False'}:
    at = words.index("--hostname")
    del words[at:at + 2]
reading, writing = os.pipe()
os.write(writing, "\\0".join(words).encode())
os.close(writing)
os.dup2(reading, 3)
os.execv("/usr/bin/bwrap", ["bwrap"] + sys.argv[1:])
`
    writeFileSync(path, program, { mode: 0o755 })
    return path
  }

  test.for(['ipc', 'uts', 'cgroup'])('that shares the %s namespace of the host is refused', async (kept) => {
    using state = scopedDirectory()
    const engine = localEngine({ stateDir: state.path, bwrap: careless(`without-${kept}`, kept) })
    await expect(engine.create({ limits: LIMITS })).rejects.toMatchObject({
      code: 'sandbox_setup_failed',
      message: `the sandbox failed its checks: its ${kept} namespace is the host's`,
    })
    await engine.close()
  })

  test('is reported with the namespaces that were found', async () => {
    using state = scopedDirectory()
    const engine = localEngine({ stateDir: state.path, bwrap: careless('with-all', 'none') })
    const report = await engine.report()
    const { usable, probes } = report
    expect([usable, probes['namespaces'], probes['user_namespace']]).toEqual([true, NAMESPACES, true])
    await engine.close()
  })
})
