import { expect, test, vi } from 'vitest'
import { Outbox } from '../../../src/engines/pyodide/outbox.ts'
import { RunState } from '../../../src/engines/pyodide/run-state.ts'
import { CAPS } from '../../../src/protocol/index.ts'
import { done, error, play } from './wire.ts'

const LONG = 500_000

function cutOf(letter: string, most: number): string {
  const half = letter.repeat(most / 2)
  return `${half}\n... ${LONG - most} characters left out ...\n${half}`
}
const CUT = { message: cutOf('m', CAPS.errorMessage), traceback: cutOf('t', CAPS.traceback) }
const GIVEN = { message: 'm'.repeat(LONG), traceback: 't'.repeat(LONG) }

test('the host bounds the message and the traceback of an error, whatever a harness sends (HA-07)', async () => {
  const { result } = await play([error(GIVEN.message, { traceback: GIVEN.traceback }), done()])
  expect({ message: result.error, traceback: result.traceback }).toEqual(CUT)
})

test('no part of a secret is left where the host cuts', async () => {
  const secret = 'sk-0123456789'
  const text = `${'m'.repeat(CAPS.errorMessage / 2 - 6)}${secret}${'m'.repeat(LONG)}`
  const { result } = await play([error(text), done()], { request: { secrets: { KEY: secret } } })
  expect(result.error).not.toContain('sk-012')
  expect(result.error).toContain('m[redacted:KEY]\n... ')
})

/** Runs a script on the engine pyodide; returns the frames of its broker. */
function startRun(more: object = {}): { state: RunState; outbox: Outbox } {
  const outbox = new Outbox(() => {})
  const request = {
    type: 'execute',
    execution_id: 'e1',
    timeout_sec: 10,
    max_output_bytes: 1 << 20,
    collect: [],
    ...more,
  }
  return {
    state: new RunState(request as unknown as ConstructorParameters<typeof RunState>[0], outbox, () => {}),
    outbox,
  }
}

test('the broker of the engine pyodide bounds them as the harness does', async () => {
  const { state, outbox } = startRun()
  state.takeFrames(Buffer.from(`${JSON.stringify({ type: 'error', ...GIVEN, kind: 'exit' })}\n`))
  outbox.end()
  expect(JSON.parse(Buffer.from((await outbox.take()) ?? []).toString())).toEqual({
    type: 'error',
    execution_id: 'e1',
    ...CUT,
    kind: 'exit',
  })
})

test('it reads no line over the output limit except tool calls and errors, which it cuts', async () => {
  const parse = vi.spyOn(JSON, 'parse')
  const { state } = startRun({ max_output_bytes: 100_000, tools: [{ name: 'f' }] })
  state.takeFrames(Buffer.from(`{"type":"final_result","data":"${'x'.repeat(1 << 20)}"}\n`))
  expect({ over: state.over, calls: parse.mock.calls.length }).toEqual({ over: true, calls: 0 })
  parse.mockRestore()

  const other = startRun({ max_output_bytes: 100_000, tools: [{ name: 'f' }] })
  other.state.takeFrames(
    Buffer.from(`{"type":"tool_call","id":"1","name":"f","args":{"x":"${'x'.repeat(1 << 20)}"}}\n`),
  )
  other.state.takeFrames(Buffer.from(`${JSON.stringify({ type: 'error', ...GIVEN, kind: 'exit' })}\n`))
  expect(other.state.over).toBe(false)
  other.outbox.end()
  const sent = Buffer.concat(
    [(await other.outbox.take()) ?? [], (await other.outbox.take()) ?? []].map((part) => Buffer.from(part)),
  )
  expect(sent.toString().match(/"type":"\w+"/g)).toEqual(['"type":"tool_call"', '"type":"error"'])
})
