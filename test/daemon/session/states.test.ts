import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createSandglass, type Sandglass, type Workspace } from '../../../src/index.ts'
import { requireDockerEngine } from '../../support/docker-engine.ts'
import { useAfterRollback, useInLaterCell } from '../../support/session-state-rules.ts'
import { SESSION_STATES } from '../../support/session-states.ts'
import { PAGE_OF_SESSIONS, pageWithTranscript } from '../../support/session-transcript.ts'

const { skip, image } = await requireDockerEngine()

/* docs/sessions.md has the table and the transcript, which the engine `local` wrote. */
describe.skipIf(skip)('in a session of the engine docker', () => {
  let sg: Sandglass
  let workspace: Workspace
  beforeAll(async () => {
    sg = await createSandglass({ engine: 'docker', docker: { image }, poolSize: 0 })
    workspace = await sg.workspace()
  }, 60_000)
  afterAll(() => sg?.close())

  test.for(SESSION_STATES)('$kind last to the next cell; after a rollback: $rollback', async (state) => {
    // One session waits for the sandbox while the other runs. A rollback leaves what another one can have appended to files.
    const inLaterCell = useInLaterCell(workspace, state)
    if (/files/.test(state.kind)) await inLaterCell
    const [later, after] = await Promise.all([inLaterCell, useAfterRollback(workspace, state)])
    expect([later.found, after.found]).toEqual([later.wanted, after.wanted])
  })

  test('a timeout tells of a lock that nothing can release', async () => {
    await using session = await workspace.session()
    const cell = await session.run('import queue\nqueue.Queue().get()', { timeoutSec: 3 })
    expect(cell).toMatchObject({
      status: 'timed-out',
      state: 'rolled-back',
      error: expect.stringContaining('it waits for a lock that nothing can release any more') as string,
    })
  })

  test('the transcript of the docs is what a session does', async () => {
    await using session = await workspace.session()
    expect(await pageWithTranscript(session)).toBe(readFileSync(PAGE_OF_SESSIONS, 'utf8'))
  })
})
