import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createCodeAgent, LocalPythonExecutor } from '../../src/code-agent/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { checkRestart, checkTwoReviewers } from '../support/code-agent/restart-rules.ts'
import { openSaver } from '../support/code-agent/savers.ts'
import { requireLocalEngine } from '../support/local-engine.ts'
import { findPostgres, type PostgresServer, startPostgres } from '../support/postgres-server.ts'
import { skipFor } from '../support/required.ts'

const { skip } = await requireLocalEngine()
const bin = findPostgres()
if (bin === undefined) skipFor('postgres', 'initdb was not found (apt-get install postgresql)')

describe.skipIf(skip || bin === undefined)('CA-10 a code agent on Postgres', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres(bin ?? '')
    // Its tables are made once: two processes at the same time would both try.
    await using _made = await openSaver(server.address)
  })
  afterAll(() => server[Symbol.asyncDispose]())

  test('whose process is killed goes on in another one, and runs no script twice', async () => {
    await expect(checkRestart(server.address)).resolves.toBeUndefined()
  })

  test('takes one of two answers from two processes, and tells the other', async () => {
    await expect(checkTwoReviewers(server.address)).resolves.toBeUndefined()
  })

  test('whose server crashes says so, and goes on when it is back', async () => {
    await using saver = await openSaver(server.address)
    await using executor = new LocalPythonExecutor()
    const model = scriptedModel('<execution-code>print("ran")</execution-code>', 'Done.')
    const agent = await createCodeAgent({ model, executor, checkpointer: saver.checkpointer })
    const thread = 'crash'
    const { proposal } = await agent.start('Go.', { thread })
    const answer = { proposal: proposal?.id ?? '', decision: 'accept' } as const
    await server.kill()
    await expect(agent.answer(answer, { thread })).rejects.toMatchObject({ code: 'checkpointer_failed' })
    await server.start()
    expect(await agent.answer(answer, { thread })).toMatchObject({ status: 'answered', answer: 'Done.' })
  })
})
