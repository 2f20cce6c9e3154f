import type { RunOptions } from '../../../src/options/index.ts'
import { defineTool } from '../../../src/tools/index.ts'
import { type Answer, type Runner, describeAnswer } from './answer.ts'
import { type Fixtures, valueOf } from './fixtures.ts'
import type { Setup } from './setup.ts'
import type { Verify } from './case-state.ts'

/** The tools that the cases of the tool bridge call. */
export const TOOL_SETUPS: ReadonlyMap<string, Setup> = new Map<string, Setup>([
  ['RPC-003', { run: () => ({ tools: [echoTool(() => undefined)] }) }],
  ['RPC-011', { run: () => ({ tools: [ODD_TOOL] }), expect: checkOddValues }],
  [
    'RPC-015',
    {
      open: () => ({ poolSize: 1, maxOverflow: 0 }),
      tools: (runner) => [
        defineTool({
          name: 'run_nested',
          description: 'Runs a script on the same pool.',
          input: { type: 'object', properties: { depth: { type: 'integer' } }, required: ['depth'] },
          execute: async () => {
            const answer = await runner.run('emit_result(1)', { checkoutTimeoutMs: 2000 })
            if (answer.thrown !== null) throw new Error(answer.thrown.message)
            return answer.result?.finalData
          },
        }),
      ],
      expect: ([answer]) =>
        isExhausted(answer) ? undefined : `expected the error "pool exhausted", got: ${describeOptional(answer)}`,
    },
  ],
  ['RPC-017', { run: () => ({ tools: [PROFILE_TOOL] }), expect: checkRegisteredName }],
  ['SEC-013', { run: withLeakyTool }],
])

/** A tool that returns its input and passes it to `record`. */
export function echoTool(record: (input: unknown) => void): ReturnType<typeof defineTool> {
  return defineTool({
    name: 'echo_tool',
    description: 'Returns its input.',
    input: { type: 'object', properties: { x: { type: 'integer' } } },
    execute: (input) => {
      record(input)
      return input
    },
  })
}

/** Starts two runs that wait for each other, so that each has its own sandbox however slowly one starts. */
export async function twoAtOnce(runner: Runner): Promise<Answer[]> {
  const { promise: bothHaveCalled, resolve } = Promise.withResolvers<void>()
  let calls = 0
  const meet = defineTool({
    name: 'meet',
    description: 'Returns when two runs have called it.',
    input: { type: 'object' },
    execute: () => {
      calls += 1
      if (calls === 2) resolve()
      return bothHaveCalled
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
  description: 'Returns values that JSON cannot express.',
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

function checkOddValues([answer]: Parameters<Verify>[0]): string | undefined {
  return JSON.stringify(answer?.result?.finalData) === JSON.stringify(ODD_OUTCOMES)
    ? undefined
    : `expected ${ODD_OUTCOMES.join()}, got: ${describeOptional(answer)}`
}

function isExhausted(answer: Answer | undefined): boolean {
  return answer?.result?.status === 'failed' && /ToolError: pool exhausted/.test(answer.result.error ?? '')
}

function checkRegisteredName([answer]: Parameters<Verify>[0]): string | undefined {
  const names = answer?.result?.toolCalls.map(({ name }) => name).join()
  return answer?.result?.finalData === 'same' && names === PROFILE_TOOL.name
    ? undefined
    : `expected a call of ${PROFILE_TOOL.name}, got calls of ${names}: ${describeOptional(answer)}`
}

/** Passes the secret to the script as well, so that the run redacts it. */
function withLeakyTool(fixtures: Fixtures): RunOptions {
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

function describeOptional(answer: Answer | undefined): string {
  return answer === undefined ? 'nothing was run' : describeAnswer(answer)
}
