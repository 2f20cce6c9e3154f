import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { createSandglass } from '../../../src/sandglass.ts'
import type { SandboxEngine } from '../../../src/sandbox/index.ts'
import { replayChannel, wireLines } from '../../../src/testing/index.ts'
import { openDirectory } from '../../../test/support/state-directory.ts'
import { type Answer, answerOf, runnerOf, type Runner } from './answer.ts'
import type { AcceptanceCase } from './case.ts'
import { fillIn, type Fixtures, valueOf } from './fixtures.ts'
import { chunksOf, evaluateIntoFile, isPythonExpression } from './material.ts'

/** The kinds of case in which a hostile sandbox sends given bytes. */
export const WIRE_KINDS: readonly string[] = ['wire_events', 'wire_raw', 'wire_raw_split_every_byte', 'wire_generator']

/** Makes the bytes that a hostile sandbox sends in one run. */
export type Hostile = () => Uint8Array | Iterable<Uint8Array>

/** The bytes of a case for each run, and a function that removes their files. */
export function hostilesOf(given: AcceptanceCase, fixtures: Fixtures): { hostiles: Hostile[]; dispose: () => void } {
  const material = given.script_or_input
  if (given.kind === 'wire_generator' && isPythonExpression(material)) {
    const directory = openDirectory('wire')
    const path = join(directory, 'bytes')
    evaluateIntoFile(material, path)
    return { hostiles: [() => chunksOf(path)], dispose: () => rmSync(directory, { recursive: true }) }
  }
  const bytes = bytesOf(given, fixtures)
  const splits = given.kind === 'wire_raw_split_every_byte' ? splitsOf(bytes) : [bytes]
  return { hostiles: splits.map((split) => () => split), dispose: () => {} }
}

/** Runs a script with the whole library on a hostile sandbox; later sandboxes are honest. */
export async function runAgainst(
  hostile: Hostile,
  fixtures: Fixtures,
  mode: 'plan' | 'interactive',
): Promise<{ answer: Answer; runner: Runner }> {
  let created = 0
  const engine: SandboxEngine = {
    name: 'hostile',
    create: async () => Promise.resolve((created += 1) === 1 ? replayChannel(hostile()) : honest()),
    report: () => Promise.reject(new Error('the hostile engine has nothing to report')),
    close: () => Promise.resolve(),
  }
  const sandglass = await createSandglass({ engine, poolSize: 1, maxOverflow: 0 })
  const executionId = valueOf(fixtures, 'EXECUTION_ID')
  return { answer: await answerOf(sandglass, 'emit_result(0)', { executionId, mode }), runner: runnerOf(sandglass) }
}

/** A sandbox that answers every script like `emit_result(1)`. */
function honest(): ReturnType<typeof replayChannel> {
  return replayChannel([], {
    start: 'at-once',
    after: 'open',
    respond: (frame) =>
      frame.type !== 'execute'
        ? undefined
        : wireLines(
            { type: 'final_result', execution_id: frame.execution_id, data: 1 },
            { type: 'script_done', execution_id: frame.execution_id, reusable: true, use: 1 },
          ),
  })
}

function bytesOf({ id, kind, script_or_input: material }: AcceptanceCase, fixtures: Fixtures): Uint8Array {
  const filled = fillIn(typeof material === 'string' ? material : JSON.stringify(material), fixtures)
  if (kind === 'wire_events') return wireLines(...(JSON.parse(filled) as unknown[]))
  if (typeof material !== 'string') throw new Error(`${id}: script_or_input must be text`)
  return Buffer.from(filled)
}

/** The bytes cut in two at each position, and once cut into single bytes. */
function splitsOf(bytes: Uint8Array): Uint8Array[][] {
  const inTwo = Array.from({ length: bytes.length - 1 }, (_, at) => [bytes.subarray(0, at + 1), bytes.subarray(at + 1)])
  return [...inTwo, Array.from(bytes, (_, at) => bytes.subarray(at, at + 1))]
}
