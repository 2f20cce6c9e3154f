import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { listRemnants } from '../../../src/engines/local/index.ts'
import { SandglassError } from '../../../src/errors/index.ts'
import { eventually } from '../../support/eventually.ts'
import { openDirectory } from '../../support/state-directory.ts'
import { answerOf, shown } from '../driver/answer.ts'
import { type HostProcess, startHost } from '../driver/host-process.ts'
import type { Assertion } from '../driver/run-case.ts'
import type { Ground } from '../driver/stage.ts'
import { inOwnMounts, withoutSeccomp, withoutUserNamespaces } from './faulty-hosts.ts'
import { openEngine } from './local.ts'

/** The faults of a host that concern the local engine. */
export const LOCAL_FAULTS: ReadonlyMap<string, Assertion> = new Map<string, Assertion>([
  ['FLT-001', killedHostLeavesNothing],
  ['FLT-007', memoryKillIsTold],
  ['FLT-013', withoutBubblewrapNothingRuns],
  ['FLT-014', missingControlsFailClosedOrAreTold],
  ['FLT-015', fullDiskIsTold],
  ['FLT-016', readOnlyStateIsTold],
  ['FLT-023', suspendedHostGoesOn],
  ['FLT-025', corruptRecordsAreSetAside],
  ['FLT-026', twoHostsShareAState],
])

const ENDLESS = 'while True:\n    pass'
const trivial = async (host: HostProcess): Promise<void> => {
  const answer = await host.run('emit_result(1)', {})
  assert.equal(answer.result?.finalData, 1, shown(answer))
}

async function killedHostLeavesNothing(): Promise<void> {
  const engine = openEngine()
  const host = startHost(engine)
  await host.open({ poolSize: 4 })
  const runs = Array.from({ length: 4 }, () =>
    host.run(ENDLESS, { limits: { executionTimeoutSec: 60 } }).catch(() => undefined),
  )
  await eventually(() => (recordsOf(engine.state).length >= 4 ? undefined : 'starting'), 10_000)
  await sleep(300)
  const ids = recordsOf(engine.state)
  host.signal('SIGKILL')
  await host.gone
  await Promise.all(runs)
  const left = await eventually(() => {
    const processes = ids.flatMap((id) => engine.processesOf(id))
    return processes.length === 0 ? undefined : JSON.stringify(processes)
  }, 2000)
  assert.equal(left, undefined)
  await using next = startHost(engine)
  await next.open({ poolSize: 1 })
  await trivial(next)
  assert.deepEqual(
    ids.filter((id) => recordsOf(engine.state).includes(id)),
    [],
    'records are left',
  )
  assert.equal(engine.resources(new Set(ids))['control groups']?.length, 0, 'control groups are left')
  await next.close()
  await engine.close()
}

async function memoryKillIsTold({ engine }: Ground): Promise<void> {
  await using sandglass = await engine.open({ poolSize: 1, limits: { memoryBytes: 128 * 1024 * 1024 } })
  const bomb = await answerOf(sandglass, 'x = b""\nwhile True:\n    x += bytes(8 << 20)', {})
  assert.equal(bomb.errorKind, 'oom', shown(bomb))
  const killed = await answerOf(sandglass, 'import os\nos.kill(os.getpid(), 9)', {})
  assert.equal(killed.errorKind, 'crash', shown(killed))
  const next = await answerOf(sandglass, 'emit_result(1)', {})
  assert.equal(next.result?.finalData, 1, shown(next))
}

async function withoutBubblewrapNothingRuns({ engine }: Ground): Promise<void> {
  const bin = openDirectory('bin')
  const withBwrap = (name: string, make: (path: string) => void): string => {
    const directory = join(bin, name)
    mkdirSync(directory)
    make(join(directory, 'bwrap'))
    return directory
  }
  // Everything but bwrap, wherever it is on this machine.
  const others = withBwrap('others', () => {})
  for (const program of ['python3', 'flock', 'sh', 'sleep']) {
    symlinkSync(execFileSync('sh', ['-c', `command -v ${program}`], { encoding: 'utf8' }).trim(), join(others, program))
  }
  const isFalse = withBwrap('false', (path) => symlinkSync('/bin/false', path))
  const notExecutable = withBwrap('plain', (path) => writeFileSync(path, '#!/bin/sh\n', { mode: 0o644 }))
  const faults = [
    { start: { env: { PATH: others } }, codes: ['bubblewrap_missing'], remedy: /bubblewrap|bwrap/ },
    {
      start: { env: { PATH: `${isFalse}:${others}` } },
      codes: ['sandbox_setup_failed', 'bubblewrap_missing'],
      remedy: /bubblewrap|bwrap/,
    },
    {
      start: { env: { PATH: `${notExecutable}:${others}` } },
      codes: ['bubblewrap_missing'],
      remedy: /bubblewrap|bwrap/,
    },
    { start: withoutUserNamespaces(), codes: ['userns_forbidden'], remedy: /max_user_namespaces/ },
  ]
  for (const { start, codes, remedy } of faults) {
    await using host = startHost(engine, start)
    const error = await refusalOf(host)
    assert.ok(codes.includes(error.code), `${error.code}: ${error.message}`)
    assert.match(error.message, remedy)
  }
  rmSync(bin, { recursive: true })
}

async function missingControlsFailClosedOrAreTold({ engine }: Ground): Promise<void> {
  await using noFilter = startHost(engine, withoutSeccomp())
  const error = await refusalOf(noFilter)
  assert.ok(['harness_start_failed', 'sandbox_setup_failed'].includes(error.code), `${error.code}: ${error.message}`)

  const state = openDirectory('no-cgroup')
  await using noGroups = startHost(engine, { prefix: inOwnMounts('mount -t tmpfs none /sys/fs/cgroup'), state })
  await noGroups.open({ poolSize: 1 })
  const answer = await noGroups.run('emit_result(1)', {})
  assert.deepEqual(answer.result?.sandbox.limitsEnforced, ['pids', 'disk', 'output', 'wall'], shown(answer))
  const report = await noGroups.report()
  assert.ok(report.reasons.some(({ code, remedy }) => code === 'no_cgroup' && remedy !== ''))
  assert.deepEqual(report.limitsEnforced, ['pids', 'disk', 'output', 'wall'])
  await using strict = startHost(engine, { prefix: inOwnMounts('mount -t tmpfs none /sys/fs/cgroup'), state })
  assert.equal((await refusalOf(strict, { require: ['memory'] })).code, 'requirement_unmet')
  rmSync(state, { recursive: true, force: true })
}

async function fullDiskIsTold({ engine }: Ground): Promise<void> {
  const state = openDirectory('full')
  await using host = startHost(engine, {
    prefix: inOwnMounts(`mount -t tmpfs -o size=16m,mode=755 none ${state}`),
    state,
  })
  await host.open({ poolSize: 1, maxOverflow: 1, maxUses: 1, checkoutTimeoutMs: 3000 })
  await trivial(host)
  const inside = join(`/proc/${host.pid}/root`, state)
  fill(join(inside, 'filler'))
  // A sandbox that was made before the disk was full may serve once more; every later run needs a new one.
  const answers = [
    await host.run('emit_result(1)', {}),
    await host.run('emit_result(1)', {}),
    await host.run('emit_result(1)', {}),
  ]
  const refused = answers.filter(({ thrown }) => thrown !== null)
  assert.ok(refused.length >= 1, 'every run succeeded on a full disk')
  for (const answer of refused) {
    const told = answer.thrown?.code === 'no_space' || /no space/i.test(answer.thrown?.message ?? '')
    assert.ok(told, shown(answer))
  }
  rmSync(join(inside, 'filler'))
  const truncated = readdirSync(join(inside, 'sandboxes')).filter((name) => {
    return name.endsWith('.json') && !readFileSync(join(inside, 'sandboxes', name), 'utf8').endsWith('}\n')
  })
  assert.deepEqual(truncated, [], 'truncated records')
  const problem = await eventually(async () => {
    const answer = await host.run('emit_result(1)', {})
    return answer.result?.finalData === 1 ? undefined : shown(answer)
  }, 15_000)
  assert.equal(problem, undefined)
  await trivial(host)
  rmSync(state, { recursive: true, force: true })
}

async function readOnlyStateIsTold({ engine }: Ground): Promise<void> {
  const state = openDirectory('read-only')
  await using host = startHost(engine, {
    prefix: inOwnMounts(`mount -t tmpfs -o size=16m,mode=755 none ${state}`),
    state,
  })
  await host.open({ poolSize: 1, maxOverflow: 1, maxUses: 1, checkoutTimeoutMs: 3000 })
  const inMounts = (...command: readonly string[]): void =>
    void execFileSync('nsenter', ['-t', String(host.pid), '-m', ...command])
  // A mount that holds files open for writing cannot become read-only: a second one on top can.
  inMounts('mount', '--bind', state, state)
  inMounts('mount', '-o', 'remount,bind,ro', state)
  const answers = [
    await host.run('emit_result(1)', {}),
    await host.run('emit_result(1)', {}),
    await host.run('emit_result(1)', {}),
  ]
  const refused = answers.filter(({ thrown }) => thrown !== null)
  assert.ok(refused.length >= 1, 'every run succeeded on a read-only state directory')
  for (const answer of refused) {
    const told = answer.thrown?.code === 'state_dir_unusable' || /state directory/.test(answer.thrown?.message ?? '')
    assert.ok(told, shown(answer))
  }
  const used = cpuSeconds(host.pid)
  await sleep(1000)
  assert.ok(cpuSeconds(host.pid) - used < 0.7, 'the host is busy with trying again and again')
  inMounts('umount', state)
  const problem = await eventually(async () => {
    const answer = await host.run('emit_result(1)', {})
    return answer.result?.finalData === 1 ? undefined : shown(answer)
  }, 15_000)
  assert.equal(problem, undefined)
  await using started = startHost(engine, {
    prefix: inOwnMounts(`mount -t tmpfs -o size=16m,mode=755 none ${state} && mount -o remount,ro ${state}`),
    state,
  })
  assert.equal((await refusalOf(started)).code, 'state_dir_unusable')
  rmSync(state, { recursive: true, force: true })
}

async function suspendedHostGoesOn(): Promise<void> {
  const engine = openEngine()
  await using host = startHost(engine)
  await host.open({ poolSize: 1 })
  let completions = 0
  const run = host
    .run(`emit_intermediate('begun')\n${ENDLESS}`, { limits: { executionTimeoutSec: 10 } })
    .finally(() => {
      completions += 1
    })
  await sleep(1000)
  host.signal('SIGSTOP')
  await sleep(30_000)
  host.signal('SIGCONT')
  const answer = await run
  assert.equal(answer.errorKind, 'timeout', shown(answer))
  assert.equal(answer.result?.intermediates.length, 1, shown(answer))
  await trivial(host)
  assert.equal(completions, 1)
  await host.close()
  assert.deepEqual(recordsOf(engine.state), [])
  await engine.close()
}

async function corruptRecordsAreSetAside(): Promise<void> {
  const engine = openEngine()
  await using living = startHost(engine)
  await living.open({ poolSize: 1 })
  await trivial(living)
  const good = recordsOf(engine.state)
  const records = join(engine.state, 'sandboxes')
  const garbled = {
    'sg-empty.json': '',
    'sg-cut.json': '{"id":"sg-cut","slot":',
    'sg-zero.json': '\0'.repeat(300),
    'sg-other.json': '[]',
  }
  for (const [name, text] of Object.entries(garbled)) writeFileSync(join(records, name), text)
  mkdirSync(join(records, 'sg-directory.json'))
  // The slots hold names of owners: that of the living host, one that nobody has, and one that cannot be locked.
  const slots = join(engine.state, 'slots')
  writeFileSync(join(slots, '0'), '\0\0garbage')
  writeFileSync(join(slots, '1'), '\0\0garbage')
  mkdirSync(join(slots, '2'))
  await using host = startHost(engine)
  await host.open({ poolSize: 1 })
  await using another = startHost(engine)
  await another.open({ poolSize: 1 })
  await Promise.all([host, another, living].map(trivial))
  const remnants = await listRemnants(engine.state)
  const reported = remnants.filter(({ kind }) => kind === 'corrupt-record').map(({ id }) => id.replace(/^.*\//, ''))
  const wanted = ['2', ...[...Object.keys(garbled), 'sg-directory.json'].map((name) => `${name}.corrupt`)]
  assert.deepEqual(reported.toSorted(), wanted.toSorted())
  assert.deepEqual(
    good.filter((id) => engine.processesOf(id).length === 0),
    [],
    'a living sandbox was lost',
  )
  for (const each of [host, another, living]) await each.close()
  await engine.close()
}

async function twoHostsShareAState(): Promise<void> {
  const engine = openEngine()
  await using first = startHost(engine)
  await using second = startHost(engine)
  await Promise.all([first, second].map((host) => host.open({ poolSize: 2 })))
  for (let round = 0; round < 5; round += 1) await Promise.all([first, second].map(trivial))
  const uids = recordsOf(engine.state).map((id) => engine.processesOf(id)[0]?.uid)
  assert.equal(new Set(uids).size, uids.length, `two sandboxes have one uid: ${uids.join(', ')}`)
  const lost = recordsOf(engine.state).length
  first.signal('SIGKILL')
  await first.gone
  await trivial(second)
  await using third = startHost(engine)
  await third.open({ poolSize: 1 })
  await trivial(third)
  await Promise.all([second.close(), third.close()])
  assert.deepEqual(recordsOf(engine.state), [], `of ${lost} records some are left`)
  const slots = readdirSync(join(engine.state, 'slots')).filter((name) => Number(name) > 1)
  assert.deepEqual(slots, [], 'the slot of the killed host was not taken over')
  await engine.close()
}

async function refusalOf(host: HostProcess, options: Parameters<HostProcess['open']>[0] = {}): Promise<SandglassError> {
  try {
    await host.open(options)
  } catch (error) {
    if (error instanceof SandglassError) return error
    throw error
  }
  const answer = await host.run('emit_result(1)', {})
  throw new Error(`it opened, and a run came to: ${shown(answer)}`)
}

function recordsOf(state: string): string[] {
  return readdirSync(join(state, 'sandboxes')).flatMap((name) => /^(.*)\.json$/.exec(name)?.[1] ?? [])
}

function fill(path: string): void {
  for (const size of [1 << 20, 1 << 12]) {
    try {
      for (;;) writeFileSync(path, Buffer.alloc(size), { flag: 'a' })
    } catch {
      // full
    }
  }
  chmodSync(path, 0o600)
}

function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ')
  return (Number(fields[11]) + Number(fields[12])) / 100
}
