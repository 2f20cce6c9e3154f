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

  test('CA-05 uses python:3.12 by default, or the default image of the engine if that is missing', async () => {
    const lines: string[] = []
    await using executor = new DockerPythonExecutor({ log: (line) => void lines.push(line) })
    expect(await executor.execute([], 'print("ran")', [])).toBe('ran\n')
    expect(lines[0]).toBe('[DockerPythonExecutor] starting (image python:3.12)')
    await using named = new DockerPythonExecutor({ image: 'absent:1', log: () => {} })
    await expect(named.execute([], 'print("ran")', [])).rejects.toMatchObject({ code: 'image_missing' })
  })
})
