import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Store, storeInDirectory } from '../../src/artifacts/index.ts'
import { createSandglass, type Sandglass } from '../../src/index.ts'
import { eventually } from '../support/eventually.ts'
import { NAMESPACE, podsOf, requireCluster } from '../support/kubernetes-cluster.ts'
import { testPersistence } from '../support/persistence-rules.ts'

const { skip, options, admin } = await requireCluster()

describe.skipIf(skip)('a persisted workspace goes on in another pod', () => {
  let sg: Sandglass
  let store: Store
  let directory: string
  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'persist-'))
    store = storeInDirectory(directory)
    sg = await createSandglass({ engine: 'kubernetes', kubernetes: options, poolSize: 0 })
  }, 60_000)
  afterAll(async () => {
    await sg.close()
    rmSync(directory, { recursive: true, force: true })
    expect(await podsOf(admin)).toEqual([])
  })

  testPersistence({
    get sg() {
      return sg
    },
    get store() {
      return store
    },
  })

  test('a deleted pod loses what changed since the last synchronisation, and says when that was', async () => {
    const first = await sg.workspace({ persist: 'lost', store, files: { kept: '1' } })
    const { syncedAt } = await first.sync()
    await admin.deleteNamespacedPod({ name: first.id, namespace: NAMESPACE, gracePeriodSeconds: 1 })
    let error: unknown
    const problem = await eventually(async () => {
      error = await first.get('kept').then(
        () => undefined,
        (thrown: unknown) => thrown,
      )
      return error === undefined ? 'the pod still answers' : undefined
    }, 15_000)
    expect(problem).toBeUndefined()
    expect(error).toMatchObject({
      code: 'workspace_lost',
      message: expect.stringContaining(`the store has its files of ${syncedAt.toISOString()}`) as string,
    })
    await first.close()
    await using next = await sg.workspace({ persist: 'lost', store })
    expect(next.id).not.toBe(first.id)
    expect(Buffer.from(await next.get('kept')).toString()).toBe('1')
  })
})
