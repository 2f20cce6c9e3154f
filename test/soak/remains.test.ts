import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdirSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { above, footingOf } from '../../bench/soak/footing.ts'
import { type Ground, makeGround } from '../../bench/soak/ground.ts'
import type { EngineName } from '../../bench/soak/kind.ts'
import { entriesOf, filesLeft, orphansOf } from '../../bench/soak/remains.ts'
import { resolveLimits, sandboxLimits } from '../../src/sandbox/index.ts'
import { requireDockerEngine } from '../docker-engine.ts'
import { requireLocalEngine } from '../local-engine.ts'
import { eventually } from '../support/eventually.ts'
import { openDirectory } from '../support/state-directory.ts'

const local = await requireLocalEngine()
const docker = await requireDockerEngine()
const SPEC = { limits: sandboxLimits(resolveLimits()) }

let ground: Ground | undefined
const started: ChildProcess[] = []
afterEach(async () => {
  for (const child of started.splice(0)) child.kill('SIGKILL')
  await ground?.close()
  ground = undefined
})

/** The kinds of things that are left, once none of them is only on its way out. */
async function kindsLeft(of: Ground): Promise<string[]> {
  let kinds: string[] = []
  await eventually(async () => {
    kinds = Object.keys(await of.remains()).toSorted()
    return kinds.length === 0 ? undefined : 'something is left'
  }, 5000)
  return kinds
}

/** An engine on which one sandbox lives. */
async function withSandbox(name: EngineName): Promise<{ at: Ground; end: () => Promise<void> }> {
  const at = (ground = makeGround(name))
  const sandbox = await at.engine.create(SPEC)
  at.settle()
  return { at, end: () => sandbox.destroy() }
}

/** The same engine, if all its sandboxes were gone: what they have is then left. */
function allEnded({ engine }: Ground): Pick<Ground['engine'], 'living' | 'ended'> {
  return { living: new Map(), ended: engine.living }
}

describe.skipIf(local.skip)('what sandboxes of the engine local leave', () => {
  test('a living sandbox is none of it, and one that was ended leaves nothing', async () => {
    const { at, end } = await withSandbox('local')
    expect(await at.remains()).toEqual({})
    await end()
    expect(await kindsLeft(at)).toEqual([])
  })

  test('a sandbox that goes on running behind its end is found by its processes, record and file', async () => {
    const { at, end } = await withSandbox('local')
    const kinds = Object.keys(await at.remains(allEnded(at)))
    expect(kinds).toEqual(expect.arrayContaining(['files', 'processes', 'records']))
    await end()
    expect(await kindsLeft(at)).toEqual([])
  })

  test('a process below the host that is in no sandbox is found', async () => {
    const { at, end } = await withSandbox('local')
    const child = spawn('sleep', ['600'], { stdio: 'ignore' })
    started.push(child)
    await once(child, 'spawn')
    expect(await at.remains()).toEqual({ processes: [expect.stringContaining(`${child.pid} `)] })
    await end()
  })

  test('a file and a directory that nobody needs are found', async () => {
    const { at, end } = await withSandbox('local')
    const temporary = process.env['TMPDIR'] ?? ''
    mkdirSync(join(temporary, 'left'))
    writeFileSync(join(temporary, 'left', 'file'), '')
    expect(await at.remains()).toEqual({ files: ['tmp/left', 'tmp/left/file'] })
    await end()
  })
})

describe.skipIf(docker.skip)('what sandboxes of the engine docker leave', () => {
  test('a container that goes on running behind its end is found, and gone when it is removed', async () => {
    const { at, end } = await withSandbox('docker')
    expect(await at.remains()).toEqual({})
    const kinds = Object.keys(await at.remains(allEnded(at)))
    expect(kinds).toEqual(expect.arrayContaining(['containers', 'processes', 'control groups']))
    await end()
    expect(await kindsLeft(at)).toEqual([])
  })
})

describe('what a host holds', () => {
  test('a descriptor that stays open is above the baseline, by the name of its file', () => {
    const baseline = footingOf(0, 0)
    const fd = openSync('/etc/hostname', 'r')
    const found = above(baseline, footingOf(0, 0))
    closeSync(fd)
    expect(Object.keys(found)).toEqual(['descriptors: /etc/hostname'])
    expect(above(baseline, footingOf(0, 0))).toEqual({})
  })

  test('a timer that goes on is above the baseline', () => {
    const baseline = footingOf(0, 0)
    const timer = setInterval(() => {}, 60_000)
    const found = above(baseline, footingOf(0, 0))
    clearInterval(timer)
    expect(Object.keys(found)).toEqual(['handles: Timeout'])
  })

  test('more sandboxes and processes than in the warm pool are above the baseline, fewer are not', () => {
    const baseline = footingOf(4, 16)
    expect(Object.entries(above(baseline, footingOf(5, 20))).map(([name, items]) => [name, items.length])).toEqual([
      ['sandboxes', 1],
      ['sandbox processes', 4],
    ])
    expect(above(baseline, footingOf(3, 12))).toEqual({})
  })
})

describe('the directory of a soak', () => {
  let directory = ''
  beforeEach(() => {
    directory = openDirectory('soak-test')
  })
  afterEach(() => rmSync(directory, { recursive: true, force: true }))

  test('a file that names a living sandbox or was there before is not left', () => {
    writeFileSync(join(directory, 'lock'), '')
    const place = { directory, known: new Set(entriesOf(directory)) }
    for (const name of ['sg-1.json', 'sg-2.json']) writeFileSync(join(directory, name), '')
    expect(filesLeft(place, new Set(['sg-1']))).toEqual(['sg-2.json'])
  })

  test('a process that names it and left its parent is an orphan; a child is none', async () => {
    const inner = `sleep 600 # ${directory}/`
    const script = `setsid sh -c 'echo $$; exec >/dev/null; ${inner.replace(' #', '; true #')}' & exit 0`
    const shell = spawn('sh', ['-c', script], { stdio: ['ignore', 'pipe', 'ignore'] })
    const [chunk] = (await once(shell.stdout, 'data')) as [Buffer]
    const pid = Number(chunk.toString())
    try {
      expect(
        await eventually(() => (orphansOf(directory).length === 1 ? undefined : 'no orphan'), 5000),
      ).toBeUndefined()
      expect(orphansOf(directory)).toEqual([expect.stringContaining(`${pid} `)])
    } finally {
      process.kill(-pid, 'SIGKILL')
    }
    expect(await eventually(() => (orphansOf(directory).length === 0 ? undefined : 'an orphan'), 5000)).toBeUndefined()
  })
})
