import { existsSync, mkdirSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { localEngine } from '../../../../src/engines/local/index.ts'
import { OrphanRetry } from '../../../../src/engines/local/orphans.ts'
import { requireLocalEngine } from '../../../support/local-engine.ts'
import { eventually } from '../../../support/eventually.ts'
import { NEEDS_ROOT } from './host-place.ts'
import { SPEC } from './plain-sandbox.ts'
import { recordsIn, scopedDirectory } from '../../../support/engines/local/state-dir.ts'

const { skip } = await requireLocalEngine()

describe.skipIf(skip || NEEDS_ROOT !== undefined)('a control group that the kernel does not release in time', () => {
  test('is removed later, and until then its sandbox keeps its record and its uid', async () => {
    using state = scopedDirectory()
    const engine = localEngine({ stateDir: state.path })
    const sandbox = await engine.create(SPEC)
    const [record] = recordsIn(state.path)
    const group = record?.cgroups.find((path) => existsSync(path)) ?? ''
    const inTheWay = join(group, 'in-the-way')
    mkdirSync(inTheWay)
    try {
      await sandbox.destroy()
      expect(recordsIn(state.path)).toEqual([record])
      await using next = await engine.create(SPEC)
      const uids = recordsIn(state.path).map(({ uid }) => uid)
      expect([uids.length, new Set(uids).size, next.id === record?.id]).toEqual([2, 2, false])
    } finally {
      rmdirSync(inTheWay)
    }
    expect(
      await eventually(() => (existsSync(group) || recordsIn(state.path).length > 0 ? group : undefined), 15_000),
    ).toBeUndefined()
    await engine.close()
  })

  test('is removed before the engine is closed', async () => {
    using state = scopedDirectory()
    const engine = localEngine({ stateDir: state.path })
    const sandbox = await engine.create(SPEC)
    const groups = recordsIn(state.path).flatMap(({ cgroups }) => cgroups.filter((path) => existsSync(path)))
    const inTheWay = join(groups[0] ?? '', 'in-the-way')
    mkdirSync(inTheWay)
    await sandbox.destroy()
    rmdirSync(inTheWay)
    await engine.close()
    expect([groups.filter((path) => existsSync(path)), recordsIn(state.path)]).toEqual([[], []])
  })
})

describe('a record that cannot be removed yet', () => {
  /** Attempts to remove the record so far. */
  let tries = 0
  const possibleAt = (first: number) => (): void => {
    if ((tries += 1) < first) throw new Error('EROFS')
  }
  beforeEach(() => void (tries = 0))

  test('is retried until it is removed', async () => {
    const orphans = new OrphanRetry()
    await orphans.remove([], possibleAt(2))
    expect(tries).toBe(1)
    expect(await eventually(() => (tries === 2 ? undefined : `${tries} tries`), 10_000)).toBeUndefined()
    await orphans.close()
    expect(tries).toBe(2)
  })

  test('is retried a last time when the engine closes, and then left to the next start', async () => {
    const orphans = new OrphanRetry()
    await orphans.remove([], possibleAt(3))
    await orphans.close()
    expect(tries).toBe(2)
  })
})
