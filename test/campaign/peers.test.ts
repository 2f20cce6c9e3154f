import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type Driver, type Home, makeHome, startDriver } from '../../campaigns/peers/driver.ts'
import { findOrphans } from '../../campaigns/peers/orphans.ts'
import { filled, PAGES, tables } from '../../campaigns/peers/render.ts'
import { comparisonSchema, type Comparison, type MeasuredRow, type Seen } from '../../campaigns/peers/result.ts'
import { timeDeadline, timeToolCalls } from '../../campaigns/peers/timings.ts'
import { exposed, leaks } from '../../campaigns/peers/visibility.ts'
import { requireLocalEngine } from '../support/local-engine.ts'

const ROOT = join(import.meta.dirname, '../..')
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')
const BARE = [process.execPath, join(import.meta.dirname, 'bare-python.main.ts')]
const LOCAL = [
  process.execPath,
  join(ROOT, 'campaigns/peers/drivers/sandglass.ts'),
  'local',
  join(ROOT, 'src/index.ts'),
]

describe('the record of the peers', () => {
  const record = (): Comparison => comparisonSchema.parse(JSON.parse(read('campaigns/peers/results.json')))

  test('has for every peer a row with all fields, or the reason why it has no row', () => {
    expect(record().rows.map(({ id }) => id)).toEqual([
      'sandglass-local',
      'sandglass-docker',
      'sandglass-pyodide',
      'docker-run',
      'llm-sandbox',
      'smolagents-docker',
      'smolagents-local',
      'jupyter',
      'srt',
      'monty',
    ])
  })

  test.each(Object.entries(PAGES))('is what %s shows (`npm run bench:peers -- --render` writes it)', (page, show) => {
    const text = read(page)
    expect(text).toBe(filled(text, show(record())))
  })

  test('has the versions that are pinned', () => {
    const pins = `${read('campaigns/peers/requirements.txt')}\n${read('campaigns/peers/npm/package.json')}`
    const versions = record().rows.flatMap((row) => Object.entries(row.versions))
    const unknown = versions.filter(
      ([name, version]) => !new RegExp(`${name}(\\[\\w+\\])?(==|": ")${version}\\b`).test(pins),
    )
    expect(unknown).toEqual([])
    expect(versions).not.toEqual([])
  })
})

test('rejects a row without a field', () => {
  const row = { id: 'x', name: 'x', versions: {}, cold: { absent: 'none' } }
  const record = { date: '2026-01-01', machine: 'm', versions: {}, rows: [row] }
  expect(comparisonSchema.safeParse(record).success).toBe(false)
})

test('a peer that could not be measured is listed with the reason and no figure', () => {
  const rows = [{ id: 'x', name: 'Other', versions: {}, missing: 'it does not install' }]
  const shown = tables({ date: '2026-01-01', machine: 'm', versions: {}, rows })
  expect(shown.split('\n').at(-1)).toBe('Not measured: Other: it does not install')
})

describe('an observation', () => {
  test('reports everything as visible without a sandbox', async () => {
    await withDriver(BARE, async (driver, home) => {
      const seenOf = words(await leaks(driver, home))
      expect(seenOf).toEqual({ variable: 'no', file: 'yes', process: 'yes' })
      expect(words(await exposed(driver, home, undefined))).toEqual({
        environment: 'yes',
        home: 'yes',
        tmp: 'yes',
        loopback: 'yes',
        gateway: 'no',
      })
      expect(await timeToolCalls(driver, 1)).toEqual({ absent: 'none' })
      expect(await timeDeadline(driver, undefined, 1)).toMatchObject({ n: 1, loopDead: false })
    })
  })

  test('of orphans finds and removes a script that nothing ends', async () => {
    expect(await findOrphans(BARE, {}, undefined, 100)).toEqual({
      processes: ['python3 -c while True: pass'],
      containers: 0,
      files: [],
    })
  })
})

const { skip } = await requireLocalEngine()

describe.skipIf(skip)('Sandglass on local', () => {
  test('shows a run nothing of earlier runs or of the host, and ends a loop at its deadline', async () => {
    await withDriver(LOCAL, async (driver, home) => {
      expect(words(await leaks(driver, home))).toEqual({ variable: 'no', file: 'no', process: 'no' })
      expect(words(await exposed(driver, home, undefined))).toEqual({
        environment: 'no',
        home: 'no',
        tmp: 'no',
        loopback: 'no',
        gateway: 'no',
      })
      expect(await timeToolCalls(driver, 1)).toMatchObject({ n: 1 })
      expect(await timeDeadline(driver, undefined, 1)).toMatchObject({ n: 1, loopDead: true })
    })
  })

  test('leaves no process when its host is killed during a run', async () => {
    expect(await findOrphans(LOCAL, {}, undefined)).toMatchObject({ processes: [], containers: 0 })
  })
})

async function withDriver(
  command: readonly string[],
  use: (driver: Driver, home: Home) => Promise<void>,
): Promise<void> {
  const home = makeHome()
  const driver = startDriver(command, home, {})
  try {
    await driver.ask('open')
    await use(driver, home)
  } finally {
    await driver.close()
    home.remove()
  }
}

function words(found: MeasuredRow['leaks'] | MeasuredRow['exposed']): Record<string, Seen['seen']> {
  return Object.fromEntries(Object.entries(found).map(([name, { seen }]: [string, Seen]) => [name, seen]))
}
