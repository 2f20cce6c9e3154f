import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdirSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { excessOver, measureHoldings } from '../../../campaigns/soak/holdings.ts'
import { entriesOf, filesLeft, orphansOf } from '../../../campaigns/soak/remains.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { openDirectory } from '../../support/state-directory.ts'
import { allEnded, kindsLeft, withSandbox } from './one-sandbox.ts'

const local = await requireLocalEngine()
const started: ChildProcess[] = []
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL')
})

describe.skipIf(local.skip)('the search for leaks of the engine local', () => {
  test('reports neither a living sandbox nor one that ended', async () => {
    const { at, end } = await withSandbox('local')
    expect(await at.remains()).toEqual({})
    await end()
    expect(await kindsLeft(at)).toEqual([])
  })

  test('finds a sandbox that runs after its end by its processes, record and file', async () => {
    const { at, end } = await withSandbox('local')
    const kinds = Object.keys(await at.remains(allEnded(at)))
    expect(kinds).toEqual(expect.arrayContaining(['files', 'processes', 'records']))
    await end()
    expect(await kindsLeft(at)).toEqual([])
  })

  test('finds a process below the host that is not in a sandbox', async () => {
    const { at, end } = await withSandbox('local')
    const child = spawn('sleep', ['600'], { stdio: 'ignore' })
    started.push(child)
    await once(child, 'spawn')
    expect(await at.remains()).toEqual({ processes: [expect.stringContaining(`${child.pid} `)] })
    await end()
  })

  test('finds an unused file and an unused directory', async () => {
    const { at, end } = await withSandbox('local')
    const temporary = process.env['TMPDIR'] ?? ''
    mkdirSync(join(temporary, 'left'))
    writeFileSync(join(temporary, 'left', 'file'), '')
    expect(await at.remains()).toEqual({ files: ['tmp/left', 'tmp/left/file'] })
    await end()
  })
})

describe('the holdings of a host', () => {
  test('a descriptor that stays open is above the baseline, by the name of its file', () => {
    const baseline = measureHoldings(0, 0)
    const fd = openSync('/etc/hostname', 'r')
    const found = excessOver(baseline, measureHoldings(0, 0))
    closeSync(fd)
    expect(Object.keys(found)).toEqual(['descriptors: /etc/hostname'])
    expect(excessOver(baseline, measureHoldings(0, 0))).toEqual({})
  })

  test('an active timer is above the baseline', () => {
    const baseline = measureHoldings(0, 0)
    const timer = setInterval(() => {}, 60_000)
    const found = excessOver(baseline, measureHoldings(0, 0))
    clearInterval(timer)
    expect(Object.keys(found)).toEqual(['handles: Timeout'])
  })

  test('more sandboxes and processes than in the warm pool are above the baseline, fewer are not', () => {
    const baseline = measureHoldings(4, 16)
    expect(
      Object.entries(excessOver(baseline, measureHoldings(5, 20))).map(([name, items]) => [name, items.length]),
    ).toEqual([
      ['sandboxes', 1],
      ['sandbox processes', 4],
    ])
    expect(excessOver(baseline, measureHoldings(3, 12))).toEqual({})
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

  test('a process that names it and was reparented is an orphan; a child is not', async () => {
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
