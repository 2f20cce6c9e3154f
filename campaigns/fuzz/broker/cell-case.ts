import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict'
import type { Random } from '../../../test/support/random.ts'
import { type CellResult, type Sandglass, SandglassError, type Session } from '../../../src/index.ts'
import { CHILD_CORPUS, type Fields } from '../corpus.ts'
import type { FuzzCase } from '../fuzz-case.ts'
import { checkStatus } from '../host/result-check.ts'
import { mutatedLine, mutatedStream } from '../lines.ts'

/** Valid lines of a cell, as the harness writes them. */
const CELL_CORPUS: readonly Fields[] = [
  ...CHILD_CORPUS,
  { type: 'value', data: [1, { a: null }], nan_as_null: [0] },
  { type: 'display', kind: 'result', data: { 'text/plain': 'x', 'image/png': 'AAAA' }, left_out: ['text/html'] },
  { type: 'finished', checkpoint: { grade: 'partial', lacks: ['thread waits'] } },
]
/** Valid contents of messages for the broker, which follow the byte with their kind. */
const ANSWERS: readonly Fields[] = [
  { grade: 'whole', lacks: [] },
  { missing: ['a socket'], checkpoint: { grade: 'none', lacks: ['a'] } },
  { variables: [{ name: 'x', type: 'int', shape: [1], bytes: 28 }] },
  { names: ['append'] },
]
const KINDS = ['R', 'Y', 'N', 'A', 'V', 'X']
const MAX_MESSAGES = 8
const AFTER = ['pass', 'os._exit(3)', 'os.close(3)', 'os.close(4)', 'os.kill(os.getpid(), 9)', 'while True: pass']
const TIMEOUT_SEC = 2

/** Bytes that a cell writes to the two sockets of its process can end at most its own session. */
export function cellCase(sg: Sandglass, random: Random): FuzzCase {
  const frames = mutatedStream(CELL_CORPUS, random, 12)
  const messages = Array.from({ length: random.below(MAX_MESSAGES) }, () => messageOf(random))
  const script = `import base64, os, socket
control, rest = socket.socket(fileno=os.dup(4)), base64.b64decode(frames)
for each in messages:
    try: control.send(base64.b64decode(each), socket.MSG_DONTWAIT)
    except OSError: pass
while rest: rest = rest[os.write(3, rest):]
${random.pick(AFTER)}`
  const inputs = { frames: frames.toString('base64'), messages: messages.map((each) => each.toString('base64')) }
  return {
    property: 'frames and answers that a cell wrote itself harm its own session at most',
    pieces: [frames, ...messages],
    async check() {
      await using workspace = await sg.workspace()
      const [neighbour, session] = await Promise.all([workspace.session(), workspace.session()])
      await neighbour.run('x = [1]')
      await session.run('y = 1')
      const cell = await session.run(script, { inputs, timeoutSec: TIMEOUT_SEC })
      checkCell(cell)
      if (cell.state === 'lost') strictEqual(await endOf(session), 'session_lost')
      else await endOf(session)
      const beside = await neighbour.run('x.append(2)\nx')
      deepStrictEqual([beside.status, beside.state, beside.value], ['step-done', 'kept', [1, 2]])
      await session.close()
      const after = await workspace.run('emit_result(7)')
      deepStrictEqual([after.status, after.finalData], ['completed', 7], after.error ?? '')
    },
  }
}

function messageOf(random: Random): Buffer {
  const kind = random.oneIn(5) ? Buffer.from([random.below(256)]) : Buffer.from(random.pick(KINDS))
  return Buffer.concat([kind, mutatedLine(ANSWERS, random)])
}

/** The error code of the next cell, which the last one may have broken; undefined if it settles. */
async function endOf(session: Session): Promise<string | undefined> {
  try {
    checkCell(await session.run('y', { timeoutSec: TIMEOUT_SEC }))
    return undefined
  } catch (error) {
    if (error instanceof SandglassError && error.code === 'session_lost') return error.code
    throw error
  }
}

function checkCell(cell: CellResult): void {
  checkStatus(cell)
  ok(cell.status !== 'sandbox-lost', `the broker did not survive: ${cell.error}`)
  ok(['kept', 'rolled-back', 'lost'].includes(cell.state), cell.state)
}
