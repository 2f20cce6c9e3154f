import type { RunOptions } from '../../../src/options.ts'
import { defineTool } from '../../../src/tools/index.ts'
import { type Answer, type Runner, shown } from './answer.ts'
import { type Fixtures, valueOf } from './fixtures.ts'
import type { Setup } from './setups.ts'
import type { Verify } from './stage.ts'

/** The tools that the cases of the tool bridge call. */
export const TOOL_SETUPS: ReadonlyMap<string, Setup> = new Map<string, Setup>([
  ['RPC-003', { run: () => ({ tools: [echoTool(() => undefined)] }) }],
  ['RPC-011', { run: () => ({ tools: [ODD_TOOL] }), expect: oddValues }],
  [
    'RPC-015',
    {
      open: () => ({ poolSize: 1, maxOverflow: 0 }),
      tools: (runner) => [
        defineTool({
          name: 'run_nested',
          description: 'Runs a script where this one runs.',
          input: { type: 'object', properties: { depth: { type: 'integer' } }, required: ['depth'] },
          execute: async () => {
            const answer = await runner.run('emit_result(1)', { checkoutTimeoutMs: 2000 })
            if (answer.thrown !== null) throw new Error(answer.thrown.message)
            return answer.result?.finalData
          },
        }),
      ],
      expect: ([answer]) => (isExhausted(answer) ? undefined : `wanted pool exhausted: ${shownOf(answer)}`),
    },
  ],
  ['RPC-017', { run: () => ({ tools: [PROFILE_TOOL] }), expect: callsTheRegisteredName }],
  ['SEC-013', { run: leaky }],
])

/** A tool that answers with what it is given, and tells it. */
export function echoTool(tell: (input: unknown) => void): ReturnType<typeof defineTool> {
  return defineTool({
    name: 'echo_tool',
    description: 'Answers with what it is given.',
    input: { type: 'object', properties: { x: { type: 'integer' } } },
    execute: (input) => {
      tell(input)
      return input
    },
  })
}

/** Two runs, neither of which ends before the other has begun: each has a sandbox, however long one takes to start. */
export async function twoAtOnce(runner: Runner): Promise<Answer[]> {
  const { promise: bothAreThere, resolve } = Promise.withResolvers<void>()
  let there = 0
  const meet = defineTool({
    name: 'meet',
    description: 'Answers when two have called it.',
    input: { type: 'object' },
    execute: () => {
      there += 1
      if (there === 2) resolve()
      return bothAreThere
    },
  })
  return Promise.all([1, 2].map(() => runner.run('meet()', { tools: [meet] })))
}

const ODD_VALUES: Readonly<Record<string, () => unknown>> = {
  bigint: () => 2n ** 70n,
  circular: () => {
    const value: unknown[] = []
    value.push(value)
    return value
  },
  function: () => () => 1,
  undefined: () => undefined,
  buffer: () => Buffer.from('bytes'),
  date: () => new Date(0),
  map: () => new Map([['a', 1]]),
  nan: () => Number.NaN,
  huge: () => 'x'.repeat(100 * 1024 * 1024),
}

const ODD_TOOL = defineTool({
  name: 'odd_tool',
  description: 'Answers with what JSON does not know.',
  input: { type: 'object', properties: { kind: { enum: Object.keys(ODD_VALUES) } }, required: ['kind'] },
  execute: (input) => ODD_VALUES[(input as { kind: string }).kind]?.(),
})

const ODD_OUTCOMES = ['err', 'err', 'err', 'value', 'value', 'value', 'value', 'err', 'err']

const PROFILE_TOOL = defineTool({
  name: 'fetch_user_profile',
  description: 'A profile.',
  input: { type: 'object', properties: { user_id: { type: 'string' } }, required: ['user_id'] },
  execute: () => ({}),
})

function oddValues([answer]: Parameters<Verify>[0]): string | undefined {
  return JSON.stringify(answer?.result?.finalData) === JSON.stringify(ODD_OUTCOMES)
    ? undefined
    : `wanted ${ODD_OUTCOMES.join()}: ${shownOf(answer)}`
}

function isExhausted(answer: Answer | undefined): boolean {
  return answer?.result?.status === 'failed' && /ToolError: pool exhausted/.test(answer.result.error ?? '')
}

function callsTheRegisteredName([answer]: Parameters<Verify>[0]): string | undefined {
  const names = answer?.result?.toolCalls.map(({ name }) => name).join()
  return answer?.result?.finalData === 'same' && names === PROFILE_TOOL.name
    ? undefined
    : `calls of ${names}: ${shownOf(answer)}`
}

/** The script has the secret too, so that the run knows that it is one. */
function leaky(fixtures: Fixtures): RunOptions {
  const secret = valueOf(fixtures, 'SECRET_A')
  const tool = defineTool({
    name: 'leaky_tool',
    description: '',
    input: { type: 'object' },
    execute: () => {
      throw new Error(`401 with key ${secret}`)
    },
  })
  return { secrets: { TOOL_A_KEY: secret }, tools: [tool] }
}

function shownOf(answer: Answer | undefined): string {
  return answer === undefined ? 'nothing was run' : shown(answer)
}
