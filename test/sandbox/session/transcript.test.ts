import { readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { createSandglass } from '../../../src/index.ts'
import { PAGE_OF_SESSIONS, pageWithTranscript } from '../../support/session-transcript.ts'

/** `SANDGLASS_WRITE_TRANSCRIPT=1 npx vitest run --project sandbox test/sandbox/session/transcript.test.ts` updates it. */
test('the transcript of docs/sessions.md is what a session does', async () => {
  await using sg = await createSandglass({ engine: 'local', poolSize: 0 })
  await using session = await sg.session()
  const wanted = await pageWithTranscript(session)
  if (process.env['SANDGLASS_WRITE_TRANSCRIPT'] === '1') writeFileSync(PAGE_OF_SESSIONS, wanted)
  expect(readFileSync(PAGE_OF_SESSIONS, 'utf8')).toBe(wanted)
})
