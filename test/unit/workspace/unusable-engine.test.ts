import { expect, test } from 'vitest'
import { SandglassError } from '../../../src/errors/index.ts'
import { reportOfProbe } from '../../../src/sandbox/index.ts'
import { type WorkspaceOwner, Workspaces } from '../../../src/workspaces.ts'
import { fakeEngine } from '../../support/pool/fake-engine.ts'

/** What the attempt to open a workspace rejects with, on an engine whose probe fails with some error. */
async function openAfter(failure: unknown): Promise<unknown> {
  const engine = fakeEngine()
  engine.failure = failure
  const found = (): never => {
    throw new Error('no sandbox was made')
  }
  engine.report = () => reportOfProbe({ engine: 'fake', create: (spec) => engine.create(spec), found, remedies: {} })
  // Only its options would be used, once the engine has shown that it has workspaces.
  const workspaces = new Workspaces(engine, { options: {} } as WorkspaceOwner)
  return workspaces.open().catch((error: unknown) => error)
}

test.each([
  [new SandglassError('sandbox_setup_failed', 'EMFILE'), { code: 'sandbox_setup_failed', retryable: true }],
  [new SandglassError('python_missing', 'no Python'), { code: 'python_missing', retryable: false }],
  [new TypeError('a mistake in the engine'), { code: 'sandbox_setup_failed', retryable: true }],
])('a probe that fails with %s says why there is no workspace', async (failure, expected) => {
  const error = await openAfter(failure)
  expect(error).toBeInstanceOf(SandglassError)
  expect(error).toMatchObject({ ...expected, message: failure.message })
})
