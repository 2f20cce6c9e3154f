import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { dockerEngine } from '../../../../src/engines/docker/index.ts'
import type { SandboxReport } from '../../../../src/sandbox/index.ts'
import { type PrivateDaemon, requirePrivateDaemon, startDaemon } from '../../../support/docker-daemon.ts'
import { requireDockerEngine } from '../../../support/docker-engine.ts'
import { docker, wordsOf } from '../../../support/containers.ts'

const { skip: noDocker, image } = await requireDockerEngine()
const { skip: noDaemon } = requirePrivateDaemon()
const STARTING_MS = 240_000
const DEFAULT = 'python:3.12-slim'
const BUILT = 'sandglass-python:latest'

/* These tests check only the names of images on the daemon, not their content. */
describe.skipIf(noDocker || noDaemon)('without the option image', () => {
  const CONTENT = 'sandglass-test-content:1'
  let daemon: PrivateDaemon
  beforeAll(async () => {
    daemon = await startDaemon()
    await daemon.load(image)
    docker(daemon.host, 'tag', image, CONTENT)
  }, STARTING_MS)
  afterEach(() => {
    for (const name of [DEFAULT, BUILT]) wordsOf(daemon.host, 'rmi', name)
  })
  afterAll(() => daemon?.close(), STARTING_MS)

  const reportWith = async (...names: readonly string[]): Promise<SandboxReport> => {
    for (const name of [DEFAULT, BUILT]) wordsOf(daemon.host, 'rmi', name)
    for (const name of names) docker(daemon.host, 'tag', CONTENT, name)
    const engine = dockerEngine({ host: daemon.host })
    try {
      return await engine.report()
    } finally {
      await engine.close()
    }
  }

  test('the image that was built here replaces the default image, and a warning names both', async () => {
    const { usable, reasons, probes } = await reportWith(BUILT)
    expect({ usable, image: probes['image'] }).toEqual({ usable: true, image: BUILT })
    expect(reasons).toEqual([
      {
        severity: 'warning',
        code: 'image_replaced',
        message: expect.stringMatching(
          /sandglass-python:latest is used: the daemon does not have the default image python:3\.12-slim/,
        ) as string,
        remedy: expect.stringContaining('docker pull') as string,
      },
    ])
  })

  test('the default image is used without a warning where both exist', async () => {
    const { usable, reasons, probes } = await reportWith(DEFAULT, BUILT)
    expect({ usable, reasons, image: probes['image'] }).toEqual({ usable: true, reasons: [], image: DEFAULT })
  })

  test('image_missing names both remedies where neither exists', async () => {
    const { usable, reasons } = await reportWith()
    expect({ usable, reasons }).toEqual({
      usable: false,
      reasons: [
        {
          severity: 'error',
          code: 'image_missing',
          message: expect.stringMatching(
            /^the image python:3\.12-slim is not on the Docker daemon at unix:.*/,
          ) as string,
          remedy:
            'docker pull python:3.12-slim, or build an image with python3: docs/docker.md shows a Dockerfile of two lines',
        },
      ],
    })
  })
})
