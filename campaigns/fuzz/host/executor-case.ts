import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict'
import { type ExecutionResult, type RunEvent, ScriptExecutor, type RunTools } from '../../../src/executor/index.ts'
import { replayChannel } from '../../../src/testing/index.ts'
import { bridgedTools, defineTool, prepareTools } from '../../../src/tools/index.ts'
import { HARNESS_CORPUS, OWN_ID } from '../corpus.ts'
import type { FuzzCase } from '../fuzz-case.ts'
import { mutatedStream } from '../lines.ts'
import { cut } from '../mutate-bytes.ts'
import type { Random } from '../../../test/support/random.ts'
import { checkResult } from './result-check.ts'

/** The time that the executor adds to the timeout of a run whose peer is silent. */
const BACKSTOP_MS = 5000
/** A margin, because 250 of these runs wait at once in one process on a shared machine. */
const SLACK_MS = 10_000

/** The options of one run, which the stream answers. */
interface Asked {
  readonly mode: 'plan' | 'interactive'
  readonly maxOutputBytes: number
  readonly hasTools: boolean
  readonly collects: boolean
  readonly secrets: Readonly<Record<string, string>>
  readonly timeoutSec: number
}

const double = defineTool({
  name: 'double',
  description: 'Twice.',
  input: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] },
  execute: (input) => Number((input as { n: number }).n) * 2,
})
const TOOLS: RunTools = bridgedTools(prepareTools([double]))

/** A run settles with a documented status and reports only data of its own frames, wherever the bytes are cut. */
export function executorCase(random: Random): FuzzCase {
  const bytes = mutatedStream(HARNESS_CORPUS, random, 20)
  const pieces = cut(bytes, random)
  const asked = askedBy(random)
  const cutAgain = random.oneIn(4) ? cut(bytes, random) : undefined
  return {
    property: 'a run settles with a documented status and with data of its own frames alone',
    pieces,
    async check() {
      const result = await runAgainst(pieces, asked)
      checkResult(result, bytes)
      if (cutAgain !== undefined) deepStrictEqual(toldOf(await runAgainst(cutAgain, asked)), toldOf(result))
    },
  }
}

/** The same with a peer that falls silent after its bytes: only the clocks of the host end such a run. */
export function silentCase(random: Random): FuzzCase {
  const bytes = mutatedStream(HARNESS_CORPUS, random, 6)
  const pieces = cut(bytes, random)
  const asked = { ...askedBy(random), timeoutSec: 0.05 }
  return {
    property: 'a run against a peer that falls silent settles within its timeout, 5 s and a slack of 10 s',
    pieces,
    async check() {
      const sandbox = replayChannel(pieces, { after: 'open' })
      const begun = performance.now()
      const result = await executorOf(asked).run({ sandbox, ...requestOf(asked) })
      const tookMs = performance.now() - begun
      checkResult(result, bytes)
      ok(tookMs <= asked.timeoutSec * 1000 + BACKSTOP_MS + SLACK_MS, `it settled after ${tookMs.toFixed(0)} ms`)
    },
  }
}

async function runAgainst(pieces: readonly Uint8Array[], asked: Asked): Promise<ExecutionResult> {
  const events: RunEvent[] = []
  const executor = executorOf(asked, (event) => void events.push(event))
  const result = await executor.run({ sandbox: replayChannel(pieces), ...requestOf(asked) })
  strictEqual(
    events.every((event) => event.executionId === OWN_ID),
    true,
    `an event of a run other than ${OWN_ID}`,
  )
  const told = events.filter((event) => event.type === 'final_result')
  ok(told.length <= 1, 'two results were reported')
  return result
}

function executorOf({ mode, maxOutputBytes, timeoutSec }: Asked, onEvent?: (event: RunEvent) => void): ScriptExecutor {
  const limits = { maxOutputBytes, executionTimeoutSec: timeoutSec }
  return new ScriptExecutor({ mode, limits, ...(onEvent === undefined ? {} : { onEvent }) })
}

function requestOf({ hasTools, collects, secrets }: Asked): {
  script: string
  executionId: string
  secrets: Readonly<Record<string, string>>
  collect?: string[]
  tools?: RunTools
} {
  return {
    script: 'pass',
    executionId: OWN_ID,
    secrets,
    ...(collects ? { collect: ['**'] } : {}),
    ...(hasTools ? { tools: TOOLS } : {}),
  }
}

function askedBy(random: Random): Asked {
  return {
    mode: random.pick(['plan', 'interactive']),
    maxOutputBytes: random.pick([1, 100, 4096, 1 << 20]),
    hasTools: random.oneIn(2),
    collects: random.oneIn(2),
    secrets: random.oneIn(4) ? { KEY: 'division' } : {},
    timeoutSec: 30,
  }
}

/** The facts that must be the same however the bytes were cut. Excluded: times, effects of a cut (whether bytes after the last
 * frame were read, and counted), and calls, which end in their own time. */
function toldOf(result: ExecutionResult): Partial<ExecutionResult> {
  const { durationMs: _, outputBytes: _bytes, ignoredFrames: _frames, toolCalls: _calls, ...told } = result
  return { ...told, warnings: told.warnings.filter(({ code }) => !code.startsWith('tool_calls')) }
}
