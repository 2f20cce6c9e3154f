import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { storeInDirectory, type Store } from '../../../src/artifacts/index.ts'
import { dockerEngine } from '../../../src/engines/docker/index.ts'
import { createSandglass, type Sandglass } from '../../../src/sandglass.ts'
import { docker } from '../../support/containers.ts'
import { requireDockerEngine } from '../../support/docker-engine.ts'
import { anyGvisor } from '../../support/gvisor.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'
import { testPersistence } from '../../support/persistence-rules.ts'

const container = await requireDockerEngine()
const gvisor = await anyGvisor()
const local = await requireLocalEngine()
afterAll(() => gvisor[Symbol.asyncDispose](), 60_000)

describe.each([
  ['docker', container.skip, { image: container.image }],
  ['docker with gVisor', gvisor.skip, { host: gvisor.host, image: gvisor.image, runtime: 'runsc' }],
])('on %s', (_, skip, options) => {
  describe.skipIf(skip || local.skip)('and local', () => {
    let sg: Sandglass
    let other: Sandglass
    let store: Store
    let directory: string
    beforeAll(async () => {
      directory = mkdtempSync(join(tmpdir(), 'persist-'))
      store = storeInDirectory(directory)
      sg = await createSandglass({ engine: dockerEngine(options), poolSize: 0 })
      other = await createSandglass({ engine: 'local', poolSize: 0 })
    }, 60_000)
    afterAll(async () => {
      await Promise.all([sg.close(), other.close()])
      rmSync(directory, { recursive: true, force: true })
    })

    testPersistence({
      get sg() {
        return sg
      },
      get other() {
        return other
      },
      get store() {
        return store
      },
    })

    test('a removed container loses what changed since the last synchronisation, and says when that was', async () => {
      const { host } = { host: undefined, ...options }
      const first = await sg.workspace({ persist: 'lost', store, files: { kept: '1' } })
      const { syncedAt } = await first.sync()
      docker(host, 'rm', '--force', first.id)
      await expect(first.get('kept')).rejects.toMatchObject({
        code: 'workspace_lost',
        message: expect.stringContaining(`the store has its files of ${syncedAt.toISOString()}`) as string,
      })
      await first.close()
      await using next = await other.workspace({ persist: 'lost', store })
      expect(Buffer.from(await next.get('kept')).toString()).toBe('1')
    })
  })
})
