import { z } from 'zod'
import { type EntryPoint, KiB, keys, many, MiB, nestedJson, running, solving } from './entry-point.ts'
import { defineTool, type RunOptions } from '../../../src/index.ts'
import { CAPS } from '../../../src/protocol/index.ts'
import { line } from './peer.ts'

const OUTPUT = MiB
const KEEP = defineTool({ name: 'keep', description: 'Keeps anything.', input: { type: 'object' }, execute: () => 1 })

const TEN_STRINGS = z.array(z.object(Object.fromEntries(Array.from('abcdefghij', (name) => [name, z.string()]))))

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

const RESULT_ENTRY_POINTS: readonly EntryPoint[] = RESULTS.map(({ json, output, ...rest }) => ({
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

const ERROR_ENTRY_POINTS: readonly EntryPoint[] = MESSAGES.map(({ name, message }) => ({
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

const STREAM_ENTRY_POINTS: readonly EntryPoint[] = [
  {
    name: 'output: many small frames',
    from: 'a script',
    unit: 'frames',
    sizes: [1000, 10_000, 50_000],
    limitBytes: OUTPUT,
    prepare: (size) => running(Array.from({ length: size }, () => line('stdout', '"text":"x"'))),
  },
  {
    name: 'errors: many small frames',
    from: 'a script',
    unit: 'frames',
    sizes: [1000, 10_000, 50_000],
    limitBytes: OUTPUT,
    prepare: (size) => running(Array.from({ length: size }, () => line('stderr', '"text":"\u001b[8mx"'))),
  },
  {
    name: 'a task with many large calls',
    from: 'a script',
    unit: 'characters',
    sizes: [10_000, 100_000, 1_000_000],
    limitBytes: 16 * CAPS.argBytes,
    prepare: (size) => {
      const args = JSON.stringify({ a: 'y'.repeat(size) })
      const calls = Array.from({ length: 16 }, (_, at) =>
        line('tool_call', `"id":"c${at}","name":"keep","args":${args}`),
      )
      const model = (): Promise<string> => Promise.resolve('```python\nemit_result(1)\n```')
      return solving(calls, { model, tools: [KEEP], maxRetries: 2 })
    },
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

/** Inputs from a script. */
export const SCRIPT_ENTRY_POINTS: readonly EntryPoint[] = [
  ...RESULT_ENTRY_POINTS,
  ...ERROR_ENTRY_POINTS,
  ...STREAM_ENTRY_POINTS,
]
