import { expect, test } from 'vitest'
import { listResources, pruneOrphans } from '../../../../src/engines/docker/containers.ts'
import type { DockerEngineOptions } from '../../../../src/engines/docker/index.ts'

test('names a wrong option of the connection before it asks a daemon', async () => {
  await expect(listResources({ apiTimeoutMs: -1 })).rejects.toThrow(/^docker\.apiTimeoutMs: must be a number/)
  await expect(listResources({ hots: 'x' } as DockerEngineOptions)).rejects.toThrow(/^docker\.hots: unknown option/)
  await expect(pruneOrphans({ host: '' })).rejects.toThrow(/^docker\.host: must be/)
})
