import { expect } from 'vitest'
import type { ToolCallFrame, ToolFailure } from '../../../src/protocol/index.ts'
import {
  type BridgedTools,
  bridgedTools,
  defineTool,
  prepareTools,
  type ToolLimits,
  type ToolOptions,
} from '../../../src/tools/index.ts'
import { eventually } from '../../support/eventually.ts'

/** A secret of the run. */
export const SECRET = 'run-secret-93'

type Answers = [id: string, answer: unknown][]

/** A run that records its events, and its port of the bridge. */
export interface BridgedSample {
  readonly port: ReturnType<BridgedTools['open']>
  readonly answers: Answers
  /** The starts and ends of calls, as text. */
  readonly log: unknown[]
  /** The starts and ends of the time that is not the script's, as text. */
  readonly clock: string[]
  /** Waits for this many answers. */
  readonly waitForAnswers: (count: number) => Promise<Answers>
}

/** Opens the bridge of one tool `work`. */
export function bridge(options: Partial<ToolOptions>, limits: ToolLimits = {}): BridgedSample {
  const work = defineTool({
    name: 'work',
    description: '',
    input: { type: 'object' },
    execute: () => null,
    ...options,
  })
  const answers: Answers = []
  const log: unknown[] = []
  const clock: string[] = []
  const port = bridgedTools(prepareTools([work]), limits).open({
    executionId: 'run-1',
    answer: async (id, answer) => {
      await Promise.resolve()
      answers.push([id, 'resultJson' in answer ? (JSON.parse(answer.resultJson) as unknown) : answer.error])
    },
    noteCall: ({ id }, effect) => void log.push(`began ${id} ${effect}`),
    noteExecution: (id) => {
      clock.push(`starts ${id}`)
      return () => void clock.push(`ends ${id}`)
    },
    noteEnd: (id, { error }) => Promise.resolve(void log.push(`ended ${id} ${error?.code ?? 'ok'}`)),
    redact: (text) => text.replaceAll(SECRET, '[redacted:RUN]'),
    redactValue: (value) => value,
    noteApproval: () => () => undefined,
  })
  const waitForAnswers = async (count: number): Promise<Answers> => {
    expect(await eventually(() => (answers.length >= count ? undefined : `${answers.length} answers`), 5000)).toBe(
      undefined,
    )
    return answers
  }
  return { port, answers, log, clock, waitForAnswers }
}

/** A call as the broker forwards it. */
export function call(id: string, args: Record<string, unknown> = {}, name = 'work'): ToolCallFrame {
  return { type: 'tool_call', execution_id: 'run-1', id, name, args }
}

/** The error of one call of a tool. */
export async function failureOf(options: Partial<ToolOptions>): Promise<ToolFailure> {
  const { port, waitForAnswers } = bridge(options)
  await port.take(call('1'))
  return (await waitForAnswers(1))[0]?.[1] as ToolFailure
}
