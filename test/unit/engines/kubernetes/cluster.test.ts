import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { beforeAll, expect, test } from 'vitest'
import { connect } from '../../../../src/engines/kubernetes/cluster.ts'

// The client takes a quarter of a second to load.
beforeAll(async () => void (await import('@kubernetes/client-node')))

test('a kubeconfig with a mistake is refused without a word of its content', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sandglass-unit-'))
  const kubeconfig = join(folder, 'config')
  writeFileSync(kubeconfig, '{"users":[{"user":{"token":"swordfish","token":"swordfish"}}]}')
  const error = await connect({ kubeconfig }).catch((thrown: unknown) => thrown)
  rmSync(folder, { recursive: true })
  expect(error).toMatchObject({
    code: 'kubernetes_config',
    message: expect.stringMatching(/^the kubeconfig cannot be read: duplicated mapping key/) as string,
  })
  expect(inspect(error, { depth: 9 })).not.toContain('swordfish')
})
