import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import { runPage } from '../../../src/cli/show-html.ts'
import type { StoredRun } from '../../../src/cli/stored-run.ts'
import { recordOf } from '../../../src/journal/index.ts'
import {
  defineTool,
  type JsonSchemaObject,
  jsonlStore,
  type NamedTool,
  type RunOptions,
  type SolveOptions,
} from '../../../src/index.ts'
import { CAPS } from '../../../src/protocol/index.ts'
import { type Answer, hostOf, line } from './peer.ts'

/** One way for hostile bytes into the host. */
export interface Entrance {
  readonly name: string
  readonly from: 'a model' | 'a script' | 'a tool server' | 'a journal'
  /** The unit of `sizes`. */
  readonly unit: string
  /** Growing sizes; the last one is at or beyond the default limit of the entrance. */
  readonly sizes: readonly number[]
  /** The default limit in question, in bytes: memory may grow by it, and by 64 MiB more. */
  readonly limitBytes: number
  /** Makes the input of a size; the returned function drives it through the entrance. Only that function is measured. */
  readonly prepare: (size: number) => Promise<Prepared>
}

export interface Prepared extends AsyncDisposable {
  readonly act: () => Promise<unknown>
}

const KiB = 1024
const MiB = 1024 * KiB
const OUTPUT = MiB
const CALLS = CAPS.argBytes
const ANSWERS_OF_TOOLS = CAPS.answerBytes

// ── what a model writes ───────────────────────────────────────────────────────────────────────────────────────────

const nested = (levels: number): string => {
  let text = 'x = 1'
  for (let level = 0; level < levels; level += 1) text = `<code>${text}\n</code>\n"""\n\`\`\`\n`
  return text
}

const ANSWERS: readonly { name: string; unit: string; sizes: readonly number[]; text: (size: number) => string }[] = [
  { name: 'tags, strings and fences within each other', unit: 'levels', sizes: [20, 500, 2000, 8000], text: nested },
  { name: 'tags that never close', unit: 'tags', sizes: [1000, 10_000, 43_000], text: (n) => '<code>'.repeat(n) },
  {
    name: 'tags that never close, a line each',
    unit: 'tags',
    sizes: [1000, 10_000, 37_000],
    text: (n) => '<code>\n'.repeat(n),
  },
  {
    name: 'fences without an end',
    unit: 'fences',
    sizes: [1000, 10_000, 26_000],
    text: (n) => '```python\n'.repeat(n),
  },
  { name: 'fences in strings', unit: 'strings', sizes: [1000, 10_000, 32_000], text: (n) => '"""\n```\n'.repeat(n) },
  {
    name: 'lines of prose',
    unit: 'lines',
    sizes: [500, 2000, 7900],
    text: (n) => 'Now we call f(x) and it is fine:\n'.repeat(n),
  },
  {
    name: 'one line of white space',
    unit: 'characters',
    sizes: [10_000, 100_000, 260_000],
    text: (n) => `x${' '.repeat(n)}y`,
  },
  {
    name: 'one line of brackets',
    unit: 'characters',
    sizes: [10_000, 100_000, 260_000],
    text: (n) => '(['.repeat(n / 2),
  },
  { name: 'thoughts within thoughts', unit: 'tags', sizes: [1000, 10_000, 37_000], text: (n) => '<think>'.repeat(n) },
  {
    name: 'a script of one long line',
    unit: 'characters',
    sizes: [10_000, 100_000, 260_000],
    text: (n) => `\`\`\`python\nx = '${'a'.repeat(n)}'\n\`\`\``,
  },
]

const answers: readonly Entrance[] = ANSWERS.map(({ text, ...rest }) => ({
  ...rest,
  name: `answer: ${rest.name}`,
  from: 'a model',
  limitBytes: 4 * MiB,
  prepare: (size) => {
    const answer = text(size)
    return solving([], { model: () => Promise.resolve(answer), maxRetries: 1 })
  },
}))

// ── what a script sends ───────────────────────────────────────────────────────────────────────────────────────────

const TEN_STRINGS = z.array(z.object(Object.fromEntries(Array.from('abcdefghij', (name) => [name, z.string()]))))
const many = (n: number, item: string): string => `[${Array.from({ length: n }, () => item).join(',')}]`
const keys = (n: number): string => `{${Array.from({ length: n }, (_, at) => `"k${at}":1`).join(',')}}`
const nestedJson = (n: number): string => '['.repeat(n) + ']'.repeat(n)

const RESULTS: readonly {
  name: string
  unit: string
  sizes: readonly number[]
  json: (size: number) => string
  output?: unknown
}[] = [
  {
    name: 'objects that do not match a zod schema',
    unit: 'objects',
    sizes: [1000, 40_000, 340_000],
    json: (n) => many(n, '{}'),
    output: TEN_STRINGS,
  },
  {
    name: 'keys that no schema knows',
    unit: 'keys',
    sizes: [1000, 20_000, 80_000],
    json: keys,
    output: z.strictObject({ total: z.number() }),
  },
  { name: 'one object of many keys', unit: 'keys', sizes: [1000, 20_000, 80_000], json: keys },
  { name: 'numbers', unit: 'numbers', sizes: [10_000, 100_000, 500_000], json: (n) => many(n, '1') },
  {
    name: 'numbers that look unsafe',
    unit: 'numbers',
    sizes: [1000, 10_000, 50_000],
    json: (n) => many(n, '0.1234567890123456'),
  },
  { name: 'levels', unit: 'levels', sizes: [100, 10_000, 500_000], json: nestedJson },
  {
    name: 'a long text',
    unit: 'characters',
    sizes: [10_000, 100_000, 1_000_000],
    json: (n) => JSON.stringify('x'.repeat(n)),
  },
]

const results: readonly Entrance[] = RESULTS.map(({ json, output, ...rest }) => ({
  ...rest,
  name: `result: ${rest.name}`,
  from: 'a script',
  limitBytes: OUTPUT,
  prepare: (size) => {
    const bytes = line('final_result', `"data":${json(size)}`)
    return running([bytes], output === undefined ? {} : { output: output as NonNullable<RunOptions['output']> })
  },
}))

const MESSAGES: readonly { name: string; kind?: string; message: (n: number) => string }[] = [
  { name: 'dictionary changed', message: (n) => `RuntimeError: dictionary${' changed '.repeat(n / 9)}` },
  { name: 'a name that is not defined', message: (n) => `NameError: name '${'a'.repeat(n)}' is not defined` },
  { name: 'white space', message: (n) => `TypeError: ${' '.repeat(n)}x` },
  { name: 'quotes', message: (n) => `KeyError: ${"'".repeat(n)}` },
  { name: 'coroutine', message: (n) => `TypeError: ${'coroutine '.repeat(n / 10)}` },
  { name: 'a frame', message: (n) => `  File "x", line ${'1'.repeat(n)}` },
  { name: 'no attribute', message: (n) => `AttributeError: 'dict' object has no attribute '${'a '.repeat(n / 2)}` },
]

const errors: readonly Entrance[] = MESSAGES.map(({ name, message }) => ({
  name: `error: ${name}`,
  from: 'a script',
  unit: 'characters',
  sizes: [10_000, 100_000, 900_000],
  limitBytes: OUTPUT,
  prepare: (size) => {
    const text = JSON.stringify(message(size))
    const bytes = line('error', `"message":${text},"traceback":${JSON.stringify(message(size / 2))},"kind":"exception"`)
    return solving([bytes], { model: () => Promise.resolve('```python\nemit_result(1)\n```'), maxRetries: 2 })
  },
}))

const streams: readonly Entrance[] = [
  {
    name: 'output: many small frames',
    from: 'a script',
    unit: 'frames',
    sizes: [1000, 10_000, 50_000],
    limitBytes: OUTPUT,
    prepare: (size) => running(Array.from({ length: size }, () => line('stdout', '"text":"x"'))),
  },
  {
    name: 'output: text that nearly holds a secret',
    from: 'a script',
    unit: 'characters',
    sizes: [10_000, 100_000, 1_000_000],
    limitBytes: OUTPUT,
    prepare: (size) => {
      const secret = `${'ab'.repeat(500)}c`
      const text = 'ab'.repeat(32 * KiB)
      const frames = Array.from({ length: Math.ceil(size / text.length) }, () => line('stdout', `"text":"${text}"`))
      return running(frames, { secrets: { KEY: secret, OTHER: 'a"b\\c\n'.repeat(50), THIRD: 'x'.repeat(4096) } })
    },
  },
  {
    name: 'a result full of forged gaps',
    from: 'a script',
    unit: 'gaps',
    sizes: [1000, 5000, 18_000],
    limitBytes: OUTPUT,
    prepare: (size) => {
      const text = `\n... 5 characters left out ...\n${'a'.repeat(20)}`.repeat(size)
      return running([line('final_result', `"data":${JSON.stringify(text)}`)], {
        secrets: { KEY: `${'a'.repeat(23)}b` },
      })
    },
  },
  {
    name: 'a result full of secrets',
    from: 'a script',
    unit: 'secrets',
    sizes: [1000, 10_000, 60_000],
    limitBytes: OUTPUT,
    prepare: (size) =>
      running([line('final_result', `"data":${many(size, '"tops3cret-value"')}`)], {
        secrets: { KEY: 'tops3cret-value' },
      }),
  },
  {
    name: 'lines that are no frames',
    from: 'a script',
    unit: 'lines',
    sizes: [1000, 20_000, 100_000],
    limitBytes: OUTPUT,
    prepare: (size) => running([Buffer.from('not json at all\n'.repeat(size))]),
  },
]

// ── tool calls ────────────────────────────────────────────────────────────────────────────────────────────────────

const tool = (input: JsonSchemaObject, name = 'ask'): NamedTool =>
  defineTool({ name, description: 'Takes anything.', effect: 'read', input, execute: () => 1 }) as NamedTool
const withField = (schema: JsonSchemaObject): JsonSchemaObject => ({ type: 'object', properties: { a: schema } })
const NODE = { $ref: '#/$defs/node' }
const TREE = {
  type: 'object',
  properties: { a: NODE },
  $defs: {
    node: {
      anyOf: [
        { type: 'object', properties: { n: NODE }, required: ['n'] },
        { type: 'object', properties: { n: NODE, m: { type: 'string' } }, required: ['n', 'm'] },
        { type: 'null' },
      ],
    },
  },
}
const deepTree = (n: number): string => `${'{"n":'.repeat(n)}1${'}'.repeat(n)}`

const CALLS_OF: readonly {
  name: string
  unit: string
  sizes: readonly number[]
  args: (size: number) => string
  count?: number
  input: JsonSchemaObject
}[] = [
  {
    name: 'a large array of empty objects',
    unit: 'objects',
    sizes: [2000, 20_000, 60_000],
    args: (n) => many(n, '{}'),
    input: withField({
      type: 'array',
      items: { type: 'object', properties: { s: { type: 'string' } }, required: ['s'] },
    }),
  },
  {
    name: 'many keys',
    unit: 'keys',
    sizes: [2000, 20_000, 60_000],
    args: keys,
    input: withField({ type: 'object' }),
  },
  {
    name: 'numbers that look unsafe',
    unit: 'numbers',
    sizes: [4000, 40_000, 120_000],
    args: (n) => many(n, '0.1234567890123456'),
    input: withField({}),
  },
  {
    name: 'a text against a pattern that backtracks',
    unit: 'characters',
    sizes: [20, 30, 40],
    args: (n) => JSON.stringify(`${'a'.repeat(n)}!`),
    input: withField({ type: 'string', pattern: '^(\\w+\\s?)*$' }),
  },
  {
    name: 'sixty calls against that pattern',
    unit: 'characters',
    sizes: [20, 30, 40],
    count: 60,
    args: (n) => JSON.stringify(`${'a'.repeat(n)}!`),
    input: withField({ type: 'string', pattern: '^(\\w+\\s?)*$' }),
  },
  {
    name: 'long repetitions in a pattern',
    unit: 'characters',
    sizes: [100, 400, 1200],
    args: (n) => JSON.stringify(`${'a'.repeat(n)}!`),
    input: withField({ type: 'string', pattern: '^[a-z]{0,400}[a-z0-9]{0,400}[a-z]{0,400}$' }),
  },
  {
    name: 'items under contains',
    unit: 'items',
    sizes: [10, 40, 1000],
    args: (n) => many(n, `"${'a'.repeat(28)}!"`),
    input: withField({ type: 'array', contains: { type: 'string', pattern: '^(\\w+\\s?)*$' } }),
  },
  {
    name: 'unique objects',
    unit: 'objects',
    sizes: [1000, 10_000, 40_000],
    args: (n) => `[${Array.from({ length: n }, (_, at) => `{"a":${at}}`).join(',')}]`,
    input: withField({ type: 'array', uniqueItems: true, items: { type: 'object' } }),
  },
  { name: 'recursive alternatives', unit: 'levels', sizes: [10, 20, 60], args: deepTree, input: TREE },
  {
    name: 'a text against format url',
    unit: 'characters',
    sizes: [1000, 30_000, 200_000],
    args: (n) => JSON.stringify(`http://${'a.'.repeat(n / 2)}`),
    input: withField({ type: 'string', format: 'url' }),
  },
  {
    name: 'a text against format email',
    unit: 'characters',
    sizes: [1000, 30_000, 200_000],
    args: (n) => JSON.stringify(`${'a.'.repeat(n / 2)}@`),
    input: withField({ type: 'string', format: 'email' }),
  },
]

const calls: readonly Entrance[] = [
  ...CALLS_OF.map(({ args, input, count = 1, ...rest }): Entrance => ({
    ...rest,
    name: `call: ${rest.name}`,
    from: 'a script',
    limitBytes: CALLS,
    prepare: (size) => {
      const text = args(size)
      const frames = Array.from({ length: count }, (_, at) =>
        line('tool_call', `"id":"c${at}","name":"ask","args":{"a":${text}}`),
      )
      return running(frames, { tools: [tool(input)] })
    },
  })),
  {
    name: 'call: tools that do not exist, among 300',
    from: 'a script',
    unit: 'calls',
    sizes: [100, 1000, 10_000],
    limitBytes: CALLS,
    prepare: (size) => {
      const tools = Array.from({ length: 300 }, (_, at) =>
        tool({ type: 'object', properties: {} }, `get_item_number_${at}`),
      )
      const frames = Array.from({ length: size }, (_, at) =>
        line('tool_call', `"id":"c${at}","name":"get_itme_nubmer_${at}","args":{}`),
      )
      return running(frames, { tools })
    },
  },
]

// ── what a tool server answers, and what a journal holds ──────────────────────────────────────────────────────────

const servers: readonly Entrance[] = [
  {
    name: 'tool answer: many objects',
    from: 'a tool server',
    unit: 'objects',
    sizes: [10_000, 100_000, 1_000_000],
    limitBytes: ANSWERS_OF_TOOLS,
    prepare: (size) => {
      const answer = Array.from({ length: size }, () => ({}))
      const big = defineTool({
        name: 'ask',
        description: 'A lot.',
        effect: 'read',
        input: {},
        output: { type: 'array', items: { type: 'object', required: ['s'] } },
        execute: () => answer,
      })
      return running([line('tool_call', '"id":"c1","name":"ask","args":{}')], { tools: [big] })
    },
  },
]

const JOURNALS: readonly {
  name: string
  unit: string
  sizes: readonly number[]
  text: (size: number, event: string) => string
}[] = [
  {
    name: 'a long line',
    unit: 'characters',
    sizes: [10_000, 1_000_000, 8_000_000],
    text: (n, event) => event.replace('"Do it', `"${'x'.repeat(n)}`),
  },
  { name: 'many events', unit: 'events', sizes: [1000, 10_000, 40_000], text: (n, event) => `${event}\n`.repeat(n) },
  {
    name: 'lines that are no events',
    unit: 'lines',
    sizes: [1000, 10_000, 100_000],
    text: (n) => '{"type":"log","message":"x"}\n'.repeat(n),
  },
  { name: 'levels', unit: 'levels', sizes: [1000, 100_000, 2_000_000], text: (n) => '['.repeat(n) },
]

const journals: readonly Entrance[] = JOURNALS.map(({ text, ...rest }) => ({
  ...rest,
  name: `journal: ${rest.name}`,
  from: 'a journal',
  limitBytes: 16 * MiB,
  prepare: async (size) => {
    const directory = mkdtempSync(join(tmpdir(), 'sandglass-stall-'))
    const store = jsonlStore(directory)
    const host = await hostOf([line('final_result', '"data":1')])
    const {
      record: { runId },
    } = await host.solve('Do it', {
      policy: 'off',
      model: () => Promise.resolve('emit_result(1)'),
      journal: store,
    })
    await host.close()
    const file = join(directory, `${runId}.jsonl`)
    const [start = '', event = '', ...others] = readFileSync(file, 'utf8').trim().split('\n')
    writeFileSync(file, [start, text(size, rest.name === 'a long line' ? start : event), ...others, ''].join('\n'))
    return {
      act: async () => {
        const events = await store.read(runId)
        const record = recordOf(events)
        return runPage({ record, events, missing: 0 } satisfies StoredRun)
      },
      [Symbol.asyncDispose]: async () => {
        await store.close()
        rmSync(directory, { recursive: true, force: true })
      },
    }
  },
}))

/** A peer that the host ignores says nothing more: such a run ends at its deadline. */
const SOON = { executionTimeoutSec: 5 }

async function running(answer: Answer, options: RunOptions = {}): Promise<Prepared> {
  const host = await hostOf(answer)
  return {
    act: () =>
      host.run('emit_result(1)', { mode: 'interactive', limits: SOON, ...options }).catch((error: unknown) => error),
    [Symbol.asyncDispose]: () => host.close(),
  }
}

async function solving(answer: Answer, options: SolveOptions): Promise<Prepared> {
  const host = await hostOf(answer)
  return {
    act: () => host.solve('Do it', { policy: 'off', ...options }),
    [Symbol.asyncDispose]: () => host.close(),
  }
}

export const ENTRANCES: readonly Entrance[] = [
  ...answers,
  ...results,
  ...errors,
  ...streams,
  ...calls,
  ...servers,
  ...journals,
]
