import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { beforeAll, expect, test } from 'vitest'
import { connect } from '../../../../src/engines/kubernetes/cluster.ts'

// The client takes a quarter of a second to load.
beforeAll(async () => void (await import('@kubernetes/client-node')))

test.each([
  ['{"users":[{"user":{"token":"swordfish","token":"swordfish"}}]}', 'line 1, column 41'],
  ['users:\n  - user:\n      password: *swordfish\n', 'line 3, column 18'],
  ['password: !swordfish x', 'line 1, column 11'],
])('a kubeconfig with a mistake is refused without a word of its content: %s', async (text, place) => {
  const folder = mkdtempSync(join(tmpdir(), 'sandglass-unit-'))
  const kubeconfig = join(folder, 'config')
  writeFileSync(kubeconfig, text)
  const error = await connect({ kubeconfig }).catch((thrown: unknown) => thrown)
  rmSync(folder, { recursive: true })
  expect(error).toMatchObject({
    code: 'kubernetes_config',
    message: `the kubeconfig cannot be read: it is no YAML at ${place}`,
  })
  expect(inspect(error, { depth: 9 })).not.toContain('swordfish')
})
