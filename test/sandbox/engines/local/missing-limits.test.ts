import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { findCgroups } from '../../../../src/engines/local/cgroup-host.ts'
import { groupMembers, removeGroup } from '../../../../src/engines/local/cgroups.ts'
import { createSandglass } from '../../../../src/index.ts'
import { requireLocalEngine } from '../../../support/local-engine.ts'
import { eventually } from '../../../support/eventually.ts'
import { NEEDS_ROOT } from './host-place.ts'
import type { LimitsOrder, Outcome } from './limits-host.ts'
import { scopedDirectory } from '../../../support/engines/local/state-dir.ts'
import { compileCache } from '../../../support/compile-cache.ts'

const { skip } = await requireLocalEngine()
const ROOT = join(import.meta.dirname, '../../../..')
const MiB = 1024 * 1024
/** Runs a command without a writable tree of control groups. */
const NO_GROUPS = ['unshare', '-m', 'sh', '-c', 'mount -t tmpfs -o ro none /sys/fs/cgroup && exec "$@"', 'sh']
/** The same, with uid 0 for every sandbox, whose processes the kernel does not count. */
const NO_GROUPS_ONE_UID = ['unshare', '--user', '--map-root-user', ...NO_GROUPS.slice(1)]
const FORKS = `
import os, time
children = 0
try:
    while children < 60:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        children += 1
except OSError: pass
emit_result(children)
`

/** Runs one of our programs without control groups; returns its output and exit code. */
function run(
  wrapper: readonly string[],
  args: readonly string[],
  given: { readonly stateDir: string; readonly input?: string },
): { stdout: string; stderr: string; code: number | null } {
  const [program, ...before] = [...wrapper, process.execPath, '--disable-warning=ExperimentalWarning']
  const { stdout, stderr, status } = spawnSync(program, [...before, ...args], {
    encoding: 'utf8',
    input: given.input ?? '',
    env: { PATH: process.env['PATH'], SANDGLASS_STATE_DIR: given.stateDir, ...compileCache() },
  })
  return { stdout, stderr, code: status }
}

function outcomes(wrapper: readonly string[], order: LimitsOrder): Outcome[] {
  using state = scopedDirectory()
  const host = join(import.meta.dirname, 'limits-host.ts')
  const { stdout, stderr, code } = run(wrapper, [host, JSON.stringify(order)], { stateDir: state.path })
  if (code !== 0) throw new Error(stderr)
  return JSON.parse(stdout) as Outcome[]
}

function cli(args: readonly string[], input: string): { lines: Record<string, unknown>[]; code: number | null } {
  using state = scopedDirectory()
  const main = join(ROOT, 'src/cli/main.ts')
  const { stdout, code } = run(NO_GROUPS, [main, ...args], { stateDir: state.path, input })
  return { lines: stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as never])), code }
}

const refusal = (limit: string, instead: string): unknown => ({
  refused: {
    code: 'limit_not_enforceable',
    message: expect.stringMatching(
      new RegExp(`^limits\\.${limit}: the engine local .*docs/running-in-a-container\\.md.*${instead}`),
    ) as string,
  },
})

describe.skipIf(skip || NEEDS_ROOT !== undefined)('without writable control groups', () => {
  test('a requested memory or CPU limit is refused, for one run or for all', () => {
    const script = 'emit_result(1)'
    const always = ['pids', 'disk', 'output', 'wall']
    const runs = [{ memoryBytes: 256 * MiB }, { cpus: 0.5 }, { pids: 64, diskBytes: 8 * MiB }, {}]
    expect(outcomes(NO_GROUPS, { runs: runs.map((limits) => ({ limits, script })) })).toEqual([
      refusal('memoryBytes', 'RLIMIT_AS'),
      refusal('cpus', 'not limited'),
      { limitsEnforced: always, finalData: 1 },
      { limitsEnforced: always, finalData: 1 },
    ])
    expect(outcomes(NO_GROUPS, { limits: { memoryBytes: 512 * MiB } })).toEqual([refusal('memoryBytes', 'RLIMIT_AS')])
    expect(outcomes(NO_GROUPS, { limits: { cpus: 1 } })).toEqual([refusal('cpus', 'not limited')])
  })

  test('the number of processes is still limited', () => {
    expect(outcomes(NO_GROUPS, { runs: [{ limits: { pids: 24 }, script: FORKS }] })).toEqual([
      { limitsEnforced: ['pids', 'disk', 'output', 'wall'], finalData: 21 },
    ])
  })

  test('and with uid 0 for every sandbox, the limit of processes is not reported, and rejected as well', () => {
    const runs = [
      { limits: {}, script: FORKS.replaceAll('60', '140') },
      { limits: { pids: 24 }, script: FORKS },
    ]
    expect(outcomes(NO_GROUPS_ONE_UID, { runs })).toEqual([
      { limitsEnforced: ['disk', 'output', 'wall'], finalData: 140 },
      refusal('pids', 'not limited'),
    ])
  })

  test('the command line exits with 8 and names the flag; a line of a batch is answered and the next one served', () => {
    const one = cli(['run', '-', '--engine', 'local', '--json', '--memory', '256m'], 'emit_result(1)')
    expect([one.code, one.lines]).toEqual([
      8,
      [
        expect.objectContaining({
          error_kind: 'infrastructure',
          code: 'limit_not_enforceable',
          error: expect.stringMatching(/^--memory: /) as string,
        }),
      ],
    ])
    const requests = [
      { id: 'a', script: 'emit_result(1)', limits: { memory_bytes: 256 * MiB } },
      { id: 'b', script: 'emit_result(1)' },
    ]
    const many = cli(
      ['batch', '--engine', 'local', '--concurrency', '1'],
      requests.map((request) => JSON.stringify(request)).join('\n'),
    )
    expect([many.code, many.lines]).toMatchObject([
      0,
      [
        { id: 'a', status: 'sandbox-lost', error_kind: 'infrastructure', code: 'limit_not_enforceable' },
        { id: 'b', status: 'completed' },
      ],
    ])
  })
})

describe.skipIf(skip || NEEDS_ROOT !== undefined)('a sandbox that was moved out of its memory group', () => {
  /** Waits until the test has moved the sandbox, before the harness is ready. */
  const TOOL = `
import time
while 'aside' not in open('/proc/1/cgroup').read(): time.sleep(0.002)
`

  test('is limited per process, reports it, and fails when the limit was required', async () => {
    using state = scopedDirectory()
    using tools = scopedDirectory('tools')
    writeFileSync(join(tools.path, 'wait.py'), TOOL)
    const memory = memoryParent()
    const aside = join(dirname(memory), `sandglass-aside-${process.pid}`)
    mkdirSync(aside)
    let done = false
    const taking = eventually(() => {
      takeOut(state.path, memory, aside)
      return done ? undefined : 'sandboxes start'
    }, 50_000)
    try {
      const options = {
        engine: 'local' as const,
        local: { stateDir: state.path },
        toolsDir: tools.path,
        poolSize: 1,
        maxOverflow: 0,
      }
      await expect(createSandglass({ ...options, limits: { memoryBytes: 512 * MiB } })).rejects.toMatchObject({
        code: 'limit_not_enforceable',
      })
      await using sandglass = await createSandglass(options)
      const result = await sandglass.run('x = bytearray(700_000_000)\nfor i in range(0, len(x), 4096): x[i] = 1')
      expect([result.status, result.error]).toEqual(['memory-limit', 'MemoryError'])
      expect(result.sandbox.limitsEnforced).not.toContain('memory')
    } finally {
      done = true
      await taking
      // The kernel updates the count shortly after the end of a process.
      await eventually(() => (removeGroup(aside) ? undefined : 'in use'), 5000)
    }
  })
})

/** The directory of the memory groups of sandboxes. */
function memoryParent(): string {
  const parent = findCgroups().parents.find(({ controllers }) => controllers.includes('memory'))
  if (parent === undefined) throw new Error('no memory group can be made here')
  return parent.path
}

/** Puts the processes of sandboxes into another group, as a service manager may do. */
function takeOut(stateDir: string, memory: string, aside: string): void {
  for (const id of sandboxesIn(stateDir)) {
    for (const pid of groupMembers(join(memory, id))) {
      try {
        writeFileSync(join(aside, 'cgroup.procs'), String(pid))
      } catch {
        // it has ended
      }
    }
  }
}

function sandboxesIn(stateDir: string): string[] {
  try {
    return readdirSync(join(stateDir, 'sandboxes')).map((name) => name.replace(/\.json$/, ''))
  } catch {
    return [] // the engine has not started yet
  }
}
