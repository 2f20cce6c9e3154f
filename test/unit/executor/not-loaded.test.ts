import { expect, test } from 'vitest'
import { done, play } from './wire.ts'

const failure = (name: string): { name: string; message: string } => ({ name, message: `ValueError: ${name}` })

test('a tool that the sandbox could not load is a warning in each run, with name and reason', async () => {
  const ready = {
    tools: { loaded: ['a.py'], failed: [{ name: 'b.py', message: 'RuntimeError: on import' }] },
    preload: { loaded: [], failed: [{ name: 'numpy', message: "No module named 'numpy'" }], deferred: ['sg_thread'] },
  }
  const { result } = await play([done()], { replay: { ready } })
  expect([result.status, result.warnings]).toEqual([
    'step-done',
    [
      {
        code: 'tool_not_loaded',
        message:
          'the tool file b.py could not be loaded, so its functions are missing in scripts: RuntimeError: on import',
        traceback: null,
      },
      {
        code: 'preload_failed',
        message: "the module numpy could not be preloaded: No module named 'numpy'",
        traceback: null,
      },
    ],
  ])
})

test('secrets are redacted there as well', async () => {
  const ready = { tools: { loaded: [], failed: [failure('s3cret.py')] } }
  const { result } = await play([done()], { replay: { ready }, request: { secrets: { KEY: 's3cret' } } })
  expect(result.warnings.map(({ message }) => message)).toEqual([
    'the tool file [redacted:KEY].py could not be loaded, so its functions are missing in scripts: ValueError: [redacted:KEY].py',
  ])
})

test('names the first ten and counts the others', async () => {
  const failed = Array.from({ length: 25 }, (_, n) => failure(`t${n}.py`))
  const { result } = await play([done()], { replay: { ready: { tools: { loaded: [], failed } } } })
  expect(result.warnings.map(({ code }) => code)).toEqual(Array.from({ length: 11 }, () => 'tool_not_loaded'))
  expect(result.warnings.at(-1)?.message).toBe('15 more tool files could not be loaded')
})
