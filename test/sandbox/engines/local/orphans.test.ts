import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { localEngine, type LocalResource } from '../../../../src/engines/local/index.ts'
import type { SandboxRecord } from '../../../../src/engines/local/records.ts'
import { firstSandboxUid } from '../../../../src/engines/local/uids.ts'
import { requireLocalEngine } from '../../../support/local-engine.ts'
import { eventually } from '../../../support/eventually.ts'
import { allProcesses, commandLineOf, descendantsOf, processOf } from '../../../support/processes.ts'
import { type Circumstances, HostPlace, NEEDS_ROOT, ORDINARY } from './host-place.ts'
import { SPEC } from './plain-sandbox.ts'
import { recordsIn, scopedDirectory } from '../../../support/engines/local/state-dir.ts'

const { skip } = await requireLocalEngine()
const place = new HostPlace()
/** Processes that a failed test would leave. */
const seen = new Set<number>()
afterEach(() => {
  for (const pid of seen) if (processOf(pid) !== undefined) process.kill(pid, 'SIGKILL')
  seen.clear()
})
afterAll(() => place[Symbol.dispose]())

/** The longest time until Node has started as a host, and that until the processes of a host that was killed have ended. */
const [START_MS, WITHIN_MS] = [40_000, 10_000]
const NO_GROUPS = ['unshare', '-m', 'sh', '-c', 'mount -t tmpfs -o ro none /sys/fs/cgroup && exec "$@"', 'sh']

/** The ways to identify the owner of a process: by group and uid, by uid alone, by neither. */
const WAYS: { name: string; given: Circumstances }[] =
  NEEDS_ROOT === undefined
    ? [
        { name: 'as root', given: {} },
        { name: 'as root without control groups', given: { wrapper: NO_GROUPS } },
        { name: 'as an ordinary user', given: { uid: ORDINARY } },
      ]
    : [{ name: 'as this user', given: {} }]

/** Writes a program that does something before it becomes bubblewrap. */
function launcher(name: string, before: string): string {
  const path = join(place.path, name)
  const program = `#!/usr/bin/python3 -I
import os, sys
${before}
os.execv("/usr/bin/bwrap", ["bwrap"] + sys.argv[1:])
`
  writeFileSync(path, program, { mode: 0o755 })
  return path
}

/** A bubblewrap that has set its parent-death signal and made the inner process, and then stops. */
const SILENT = `
reading, writing = os.pipe()
os.set_inheritable(reading, True)
os.set_blocking(writing, False)
for size in (65536, 1):
    try:
        while True:
            os.write(writing, b"x" * size)
    except BlockingIOError:
        pass
os.set_blocking(writing, True)
os.dup2(writing, 4)
`

/** A bubblewrap that sets its parent-death signal only after its host has ended. */
const LATE = `
args = b""
while chunk := os.read(3, 65536):
    args += chunk
reading, writing = os.pipe()
os.write(writing, args)
os.close(writing)
os.dup2(reading, 3)
with open("/proc/self/comm", "w") as name:
    name.write("sg-late")
os.read(0, 1)
`

/** Waits for a process below a host. */
async function waitForProcess(host: number, isIt: (pid: number) => boolean): Promise<number> {
  let found = 0
  const problem = await eventually(() => {
    found = descendantsOf(host).find(isIt) ?? 0
    return found === 0 ? 'it is not there' : undefined
  }, START_MS)
  expect(problem).toBeUndefined()
  seen.add(found)
  return found
}

/** PID 1 of a starting sandbox and its bubblewrap. */
async function launching(host: number): Promise<[outer: number, inner: number]> {
  const inner = await waitForProcess(host, (pid) => processOf(pid)?.insidePid === 1)
  const outer = processOf(inner)?.parent ?? 0
  seen.add(outer)
  return [outer, inner]
}

/** Living processes of a sandbox: by its name, by the session of its launcher, and their descendants. */
function livingOf(launcher: number, id: string): number[] {
  const heads = allProcesses().filter(({ pid }) => sessionOf(pid) === launcher || commandLineOf(pid).includes(id))
  return [...new Set(heads.flatMap(({ pid }) => [pid, ...descendantsOf(pid)]))]
}

/** Describes a process for the message of a failed test: its command and its wait channel in the kernel. */
function described(pid: number): string {
  const { state, parent, insidePid } = processOf(pid) ?? {}
  const wait = textOf(`/proc/${pid}/wchan`)
  return `${pid} ${nameOf(pid)} (state ${state}, parent ${parent}, inside ${insidePid}, waits in ${wait})`
}

function sessionOf(pid: number): number {
  const stat = textOf(`/proc/${pid}/stat`)
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[3])
}

function nameOf(pid: number): string {
  return textOf(`/proc/${pid}/comm`).trim()
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return '' // it ended meanwhile
  }
}

async function killHost(host: ChildProcess): Promise<void> {
  const gone = once(host, 'exit')
  host.kill('SIGKILL')
  await gone
}

async function goneByThemselves(pids: readonly number[]): Promise<void> {
  const left = await eventually(() => {
    const living = pids.filter((pid) => processOf(pid) !== undefined)
    return living.length === 0 ? undefined : `${living.length} of ${pids.length} processes live`
  }, WITHIN_MS)
  expect(left).toBeUndefined()
}

function onlyRecord(state: string): SandboxRecord {
  const [record, ...others] = recordsIn(state)
  if (record === undefined || others.length > 0) throw new Error('expected exactly one record')
  return record
}

/** Resources that `ps` or `prune` of such a host lists for one sandbox, these processes and this state directory. */
function listWith(
  act: 'ps' | 'prune',
  state: string,
  given: Circumstances,
  id: string,
  pids: readonly number[],
): string[] {
  const [all = []] = place.run<LocalResource[]>({ act, engine: { stateDir: state } }, given)
  return all
    .filter((one) => one.sandbox === id || one.id.startsWith(state) || pids.map(String).includes(one.id))
    .map(({ kind, id: what, sandbox, owner, uid }) => [kind, owner, sandbox, uid, what].join(' '))
    .toSorted()
}

/** The expected lists. */
function resourcesOf(state: string, record: SandboxRecord, owner: 'alive' | 'gone', pids: readonly number[]): string[] {
  const { id, uid, slot, cgroups } = record
  const line = (kind: string, what: string): string => [kind, owner, id, uid, what].join(' ')
  return [
    ...pids.map((pid) => line('process', String(pid))),
    ...cgroups.map((path) => line('cgroup', path)),
    line('record', join(state, 'sandboxes', `${id}.json`)),
    [
      'uid-lock',
      owner,
      '',
      uid === null ? '' : (firstSandboxUid() ?? 0) + 64 * slot,
      join(state, 'slots', String(slot)),
    ].join(' '),
  ].toSorted()
}

describe.skipIf(skip).each(WAYS)('a host $name', ({ given }) => {
  test('owns its lock and every process of its sandbox, and prune leaves them alone', async () => {
    const state = place.stateDir(given.uid)
    const host = await place.hold({ engine: { stateDir: state } }, given)
    const pids = descendantsOf(host.process.pid ?? 0)
    expect(pids.length).toBeGreaterThanOrEqual(4) // bubblewrap, broker, zygote, spare
    const record = onlyRecord(state)
    expect([record.uid === null, record.cgroups.length === 0]).toEqual([
      given.uid !== undefined || NEEDS_ROOT !== undefined,
      given.uid !== undefined || given.wrapper !== undefined || record.cgroups.length === 0,
    ])
    const expected = resourcesOf(state, record, 'alive', pids)
    expect(listWith('ps', state, given, host.id, pids)).toEqual(expected)
    expect(listWith('prune', state, given, host.id, pids)).toEqual([])
    expect(listWith('ps', state, given, host.id, pids)).toEqual(expected)
    host.process.stdin?.end()
    await once(host.process, 'exit')
    expect(listWith('ps', state, given, host.id, pids)).toEqual([])
  })

  test('that was killed leaves orphans, which prune removes', async () => {
    const state = place.stateDir(given.uid)
    const host = await place.hold({ engine: { stateDir: state } }, given)
    const pids = descendantsOf(host.process.pid ?? 0)
    const record = onlyRecord(state)
    await killHost(host.process)
    await goneByThemselves(pids)
    const expected = resourcesOf(state, record, 'gone', [])
    expect(listWith('ps', state, given, host.id, pids)).toEqual(expected)
    expect(listWith('prune', state, given, host.id, pids)).toEqual(expected)
    expect(listWith('ps', state, given, host.id, pids)).toEqual([])
    expect(listWith('prune', state, given, host.id, pids)).toEqual([])
  })

  test('that was killed before it let its sandbox continue leaves a process that prune ends', async () => {
    const state = place.stateDir(given.uid)
    const bwrap = launcher(`silent-${basename(state)}`, SILENT)
    const host = place.start({ engine: { stateDir: state, bwrap } }, given)
    const [outer, inner] = await launching(host.pid ?? 0)
    const record = onlyRecord(state)
    await killHost(host)
    await goneByThemselves([outer])
    expect(processOf(inner)?.insidePid).toBe(1)

    const expected = resourcesOf(state, record, 'gone', [inner])
    expect(listWith('ps', state, given, record.id, [inner])).toEqual(expected)
    expect(listWith('prune', state, given, record.id, [inner])).toEqual(expected)
    expect(processOf(inner)).toBeUndefined()
    expect(listWith('ps', state, given, record.id, [inner])).toEqual([])
  })

  test('that was killed before bubblewrap set its parent-death signal has a sandbox that ends by itself, whatever it loads', async () => {
    const state = place.stateDir(given.uid)
    const packages = join(place.path, `hanging-${basename(state)}`)
    mkdirSync(packages, { mode: 0o755 })
    writeFileSync(join(packages, 'sg_hangs.py'), 'import time\ntime.sleep(3600)\n')
    const bwrap = launcher(`late-${basename(state)}`, LATE)
    const host = place.start({ engine: { stateDir: state, bwrap }, spec: { packages, preload: ['sg_hangs'] } }, given)
    const outer = await waitForProcess(host.pid ?? 0, (pid) => nameOf(pid) === 'sg-late')
    const record = onlyRecord(state)
    await killHost(host)
    const left = await eventually(() => {
      const living = livingOf(outer, record.id)
      for (const pid of living) seen.add(pid)
      return living.length === 0 ? undefined : `these live: ${living.map(described).join(', ')}`
    }, WITHIN_MS)
    expect(left).toBeUndefined()
  })
})

describe.skipIf(skip)('a sandbox that is aborted while it starts', () => {
  test('leaves no process at any stage of bubblewrap', async () => {
    using state = scopedDirectory()
    const engine = localEngine({ stateDir: state.path, bwrap: launcher('silent-given-up', SILENT) })
    const giveUp = new AbortController()
    const creation = engine.create(SPEC, { signal: giveUp.signal }).then(
      () => 'created',
      (error: unknown) => (error as { code: string }).code,
    )
    const pids = await launching(process.pid)
    giveUp.abort()
    expect(await creation).toBe('aborted')
    expect(pids.filter((pid) => processOf(pid) !== undefined)).toEqual([])
    expect(recordsIn(state.path)).toEqual([])
    await engine.close()
  })
})
