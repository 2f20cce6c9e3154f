import { describe, expect, test } from 'vitest'
import { DockerPythonExecutor } from '../../../src/code-agent/index.ts'
import { checkExecutor, checkWebSocket } from '../../support/code-agent/executor-rules.ts'
import { requireDockerEngine } from '../../support/docker-engine.ts'
import { noUv } from '../../support/environments/fixture.ts'
import { skipFor } from '../../support/required.ts'

const docker = await requireDockerEngine()
if (noUv !== undefined) skipFor('uv', noUv)

describe.skipIf(docker.skip)('DockerPythonExecutor', () => {
  test.skipIf(noUv !== undefined)(
    'CA-05, CA-06 runs scripts in containers with packages and a workspace, and logs what they print',
    async () => {
      const lines: string[] = []
      const log = (line: string): void => void lines.push(line)
      await expect(
        checkExecutor((options) => new DockerPythonExecutor({ ...options, image: docker.image, log })),
      ).resolves.toBeUndefined()
      expect(lines).toContain('[DockerPythonExecutor][script][stdout] before')
      expect(lines).toContain('[DockerPythonExecutor] packages: wanted, later')
    },
  )

  test('CA-07 answers calls of tools over a WebSocket', async () => {
    await expect(
      checkWebSocket((options) => new DockerPythonExecutor({ ...options, image: docker.image, log: () => {} })),
    ).resolves.toBeUndefined()
  })

  test('CA-05 takes python:3.12 by default', async () => {
    await using executor = new DockerPythonExecutor({ log: () => {} })
    // The machines of the tests cannot pull it.
    const run = executor.execute([], 'import sys\nprint(sys.version_info[:2])', [])
    await expect(run.catch((error: Error) => error.message)).resolves.toMatch(/python:3\.12\b|^\(3, 12\)\n$/)
  })
})
