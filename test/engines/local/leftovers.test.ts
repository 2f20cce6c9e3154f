import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import type { CgroupHost } from '../../../src/engines/local/cgroups.ts'
import { listRemnants, localEngine, pruneRemnants, type Remnant } from '../../../src/engines/local/index.ts'
import { startCode } from '../../../src/engines/local/mark.ts'
import { lookAround } from '../../../src/engines/local/remnants.ts'
import { type SandboxRecord, StateDirectory } from '../../../src/engines/local/state.ts'
import { firstSandboxUid } from '../../../src/engines/local/uids.ts'
import { resolveLimits, sandboxLimits, type SandboxSpec } from '../../../src/sandbox/index.ts'
import { requireLocalEngine } from '../../local-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { allProcesses, processOf } from '../../support/processes.ts'
import { type Circumstances, HostPlace, NEEDS_ROOT, ORDINARY } from './host-place.ts'
import { openDirectory, scopedDirectory } from './state-dir.ts'

const { skip } = await requireLocalEngine()
const place = new HostPlace()
const started: ChildProcess[] = []
/** Processes that a failed test would leave. */
const seen = new Set<number>()
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL')
  for (const pid of seen) if (processOf(pid) !== undefined) process.kill(pid, 'SIGKILL')
  seen.clear()
})
afterAll(() => place[Symbol.dispose]())

const SPEC: SandboxSpec = { limits: sandboxLimits(resolveLimits()) }
const WITHIN_MS = 10_000
const NO_GROUPS = ['unshare', '-m', 'sh', '-c', 'mount -t tmpfs -o ro none /sys/fs/cgroup && exec "$@"', 'sh']

/** Each gives another answer to "whose process is this": a group and a uid, a uid alone, neither. */
const WAYS: { name: string; given: Circumstances }[] =
  NEEDS_ROOT === undefined
    ? [
        { name: 'as root', given: {} },
        { name: 'as root without control groups', given: { wrapper: NO_GROUPS } },
        { name: 'as an ordinary user', given: { uid: ORDINARY } },
      ]
    : [{ name: 'as this user', given: {} }]

let directories = 0
const stateDir = ({ uid }: Circumstances): string => {
  directories += 1
  if (uid !== undefined) return place.directory(`left-${directories}`)
  const path = join(place.path, `left-${directories}`)
  mkdirSync(path, { mode: 0o755 })
  return path
}

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

/** It has asked to die with its host, has made the process inside, and never comes to tell either of them so. */
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

/** It asks to die with its host only when there is no host any more. */
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

function below(root: number): number[] {
  const all = allProcesses()
  const found: number[] = []
  for (let parents = [root]; parents.length > 0;) {
    const children = all.filter(({ parent }) => parents.includes(parent)).map(({ pid }) => pid)
    found.push(...children)
    parents = children
  }
  return found
}

/** Waits for a process below a host. */
async function awaited(host: number, isIt: (pid: number) => boolean): Promise<number> {
  let found = 0
  const problem = await eventually(() => {
    found = below(host).find(isIt) ?? 0
    return found === 0 ? 'it is not there' : undefined
  }, WITHIN_MS)
  expect(problem).toBeUndefined()
  seen.add(found)
  return found
}

/** PID 1 of a sandbox that is being made, and the bubblewrap that makes it. */
async function launching(host: number): Promise<[outer: number, inner: number]> {
  const inner = await awaited(host, (pid) => processOf(pid)?.insidePid === 1)
  const outer = processOf(inner)?.parent ?? 0
  seen.add(outer)
  return [outer, inner]
}

/** What lives of a sandbox: by its name, by the session of its launcher, and what is below those. */
function livingOf(launcher: number, id: string): number[] {
  const heads = allProcesses().filter(({ pid }) => sessionOf(pid) === launcher || commandLineOf(pid).includes(id))
  return [...new Set(heads.flatMap(({ pid }) => [pid, ...below(pid)]))]
}

function sessionOf(pid: number): number {
  const stat = textOf(`/proc/${pid}/stat`)
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[3])
}

function commandLineOf(pid: number): string {
  return textOf(`/proc/${pid}/cmdline`)
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

async function killed(host: ChildProcess): Promise<void> {
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

function recordsIn(state: string): SandboxRecord[] {
  return readdirSync(join(state, 'sandboxes'))
    .filter((name) => name.endsWith('.json'))
    .map((name) => JSON.parse(readFileSync(join(state, 'sandboxes', name), 'utf8')) as SandboxRecord)
}

function onlyRecord(state: string): SandboxRecord {
  const [record, ...others] = recordsIn(state)
  if (record === undefined || others.length > 0) throw new Error('there is not one record')
  return record
}

/** What the command `ps` or `prune` of such a host tells of one sandbox, these processes and this state directory. */
function told(act: 'ps' | 'prune', state: string, given: Circumstances, id: string, pids: readonly number[]): string[] {
  const [all = []] = place.run<Remnant[]>({ act, engine: { stateDir: state } }, given)
  return all
    .filter((one) => one.sandbox === id || one.id.startsWith(state) || pids.map(String).includes(one.id))
    .map(({ kind, id: what, sandbox, owner, uid }) => [kind, owner, sandbox, uid, what].join(' '))
    .toSorted()
}

/** The same, as it must be. */
function remnantsOf(state: string, record: SandboxRecord, owner: 'alive' | 'gone', pids: readonly number[]): string[] {
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
  test('is told to own its lock and every process of its sandbox, and prune leaves them alone', async () => {
    const state = stateDir(given)
    const host = await place.hold({ engine: { stateDir: state } }, given)
    const pids = below(host.process.pid ?? 0)
    expect(pids.length).toBeGreaterThanOrEqual(4) // bubblewrap, broker, zygote, spare
    const record = onlyRecord(state)
    expect([record.uid === null, record.cgroups.length === 0]).toEqual([
      given.uid !== undefined || NEEDS_ROOT !== undefined,
      given.uid !== undefined || given.wrapper !== undefined || record.cgroups.length === 0,
    ])
    const expected = remnantsOf(state, record, 'alive', pids)
    expect(told('ps', state, given, host.id, pids)).toEqual(expected)
    expect(told('prune', state, given, host.id, pids)).toEqual([])
    expect(told('ps', state, given, host.id, pids)).toEqual(expected)
    host.process.stdin?.end()
    await once(host.process, 'exit')
    expect(told('ps', state, given, host.id, pids)).toEqual([])
  })

  test('that was killed leaves what prune removes, once and for all', async () => {
    const state = stateDir(given)
    const host = await place.hold({ engine: { stateDir: state } }, given)
    const pids = below(host.process.pid ?? 0)
    const record = onlyRecord(state)
    await killed(host.process)
    await goneByThemselves(pids)
    const expected = remnantsOf(state, record, 'gone', [])
    expect(told('ps', state, given, host.id, pids)).toEqual(expected)
    expect(told('prune', state, given, host.id, pids)).toEqual(expected)
    expect(told('ps', state, given, host.id, pids)).toEqual([])
    expect(told('prune', state, given, host.id, pids)).toEqual([])
  })

  test('that was killed before its sandbox was told to go on leaves a process that prune ends', async () => {
    const state = stateDir(given)
    const bwrap = launcher(`silent-${directories}`, SILENT)
    const host = place.start({ engine: { stateDir: state, bwrap } }, given)
    const [outer, inner] = await launching(host.pid ?? 0)
    const record = onlyRecord(state)
    await killed(host)
    await goneByThemselves([outer])
    expect(processOf(inner)?.insidePid).toBe(1)

    const expected = remnantsOf(state, record, 'gone', [inner])
    expect(told('ps', state, given, record.id, [inner])).toEqual(expected)
    expect(told('prune', state, given, record.id, [inner])).toEqual(expected)
    expect(processOf(inner)).toBeUndefined()
    expect(told('ps', state, given, record.id, [inner])).toEqual([])
  })

  test('that was killed before bubblewrap asked to die with it has a sandbox that ends by itself, whatever it loads', async () => {
    const state = stateDir(given)
    const packages = join(place.path, `hanging-${directories}`)
    mkdirSync(packages, { mode: 0o755 })
    writeFileSync(join(packages, 'sg_hangs.py'), 'import time\ntime.sleep(3600)\n')
    const bwrap = launcher(`late-${directories}`, LATE)
    const host = place.start({ engine: { stateDir: state, bwrap }, spec: { packages, preload: ['sg_hangs'] } }, given)
    const outer = await awaited(host.pid ?? 0, (pid) => nameOf(pid) === 'sg-late')
    const record = onlyRecord(state)
    await killed(host)
    const left = await eventually(() => {
      const living = livingOf(outer, record.id)
      for (const pid of living) seen.add(pid)
      return living.length === 0 ? undefined : `${living.length} processes live`
    }, WITHIN_MS)
    expect(left).toBeUndefined()
  })
})

describe.skipIf(skip)('a sandbox that is given up while it starts', () => {
  test('leaves no process, however far bubblewrap had come', async () => {
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

describe.skipIf(skip)('a process that no host here started', () => {
  /** Sleeps under a command line that begins with these words. */
  const sleeper = async (...words: string[]): Promise<number> => {
    const child = spawn('/bin/sh', ['-c', 'read forever', ...words], { stdio: ['pipe', 'ignore', 'ignore'] })
    started.push(child)
    await once(child, 'spawn')
    return child.pid ?? 0
  }
  /** A state directory with the record of a sandbox whose owner is gone. */
  const withDeadOwner = (id: string): ReturnType<typeof openDirectory> => {
    const path = openDirectory()
    mkdirSync(join(path, 'sandboxes'))
    mkdirSync(join(path, 'slots'))
    const record: SandboxRecord = {
      id,
      slot: 0,
      owner: '3f0f3c55-0000-4000-8000-000000000000',
      uid: null,
      host_pid: 1,
      cgroups: [],
      created_at: new Date().toISOString(),
    }
    writeFileSync(join(path, 'sandboxes', `${id}.json`), JSON.stringify(record))
    return path
  }
  const find = (remnants: readonly Remnant[], pid: number): Remnant | undefined =>
    remnants.find(({ kind, id }) => kind === 'process' && id === String(pid))

  test('is neither listed nor killed for naming a sandbox of a dead owner', async () => {
    const id = 'sg-named'
    const state = withDeadOwner(id)
    const pids = [await sleeper(id), await sleeper(startCode(id)), await sleeper('-c', `${startCode(id)} `, '{}')]
    const listed = await listRemnants(state)
    expect(pids.map((pid) => find(listed, pid))).toEqual([undefined, undefined, undefined])
    await pruneRemnants(state)
    expect(pids.filter((pid) => processOf(pid) === undefined)).toEqual([])
    rmSync(state, { recursive: true })
  })

  test('is listed with an unknown owner, and left alone, when its sandbox has no record here', async () => {
    using state = scopedDirectory()
    const pid = await sleeper('-c', startCode('sg-elsewhere'), '{}')
    const remnant = { kind: 'process', id: String(pid), sandbox: 'sg-elsewhere', owner: 'unknown', uid: null }
    expect(find(await listRemnants(state.path), pid)).toEqual(remnant)
    expect(find(await pruneRemnants(state.path), pid)).toBeUndefined()
    expect(processOf(pid)).toBeDefined()
  })

  test('is known by its control groups where its command line says nothing, and listed once for all of them', async () => {
    using state = scopedDirectory()
    const pid = await sleeper()
    const parents = ['memory', 'pids'].map((controller) => {
      const path = join(state.path, controller, 'sandglass')
      mkdirSync(join(path, 'sg-grouped'), { recursive: true })
      writeFileSync(join(path, 'sg-grouped/cgroup.procs'), `${pid}\n`)
      return { path, controllers: [controller] }
    })
    const host: CgroupHost = { version: 1, enforces: [], parents, problems: [] }
    const { processes, cgroups } = await lookAround(new StateDirectory(state.path), host)
    const common = { sandbox: 'sg-grouped', owner: 'unknown', uid: null }
    expect(processes.map(({ remnant }) => remnant).filter(({ sandbox }) => sandbox === 'sg-grouped')).toEqual([
      { kind: 'process', id: String(pid), ...common },
    ])
    expect(cgroups.map(({ remnant }) => remnant)).toEqual(
      parents.map(({ path }) => ({ kind: 'cgroup', id: join(path, 'sg-grouped'), ...common })),
    )
  })

  test('is killed when it bears the whole mark of a sandbox whose owner is dead', async () => {
    const id = 'sg-dead'
    const state = withDeadOwner(id)
    const pid = await sleeper('-c', startCode(id), '{}')
    expect(find(await pruneRemnants(state), pid)).toEqual({
      kind: 'process',
      id: String(pid),
      sandbox: id,
      owner: 'gone',
      uid: null,
    })
    expect(existsSync(join(state, 'sandboxes', `${id}.json`))).toBe(false)
    expect(await listRemnants(state).then((all) => all.filter(({ sandbox }) => sandbox === id))).toEqual([])
    rmSync(state, { recursive: true })
  })
})
