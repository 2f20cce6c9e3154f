import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { problemByJudge } from '../../../src/tools/schema-judge.ts'
import { defineTool, type PreparedTool, prepareTools, type ToolSchema } from '../../../src/tools/index.ts'
import { stallDuring } from '../../support/stall.ts'

const MAX_STALL_MS = 250

function prepare(input: ToolSchema, output?: ToolSchema): PreparedTool {
  const [tool] = prepareTools([
    defineTool({ name: 'f', description: '', input, output, execute: () => null }),
  ]).tools.values()
  if (tool === undefined) throw new Error('no tool')
  return tool
}

const p = (schema: object): ToolSchema => ({ type: 'object', properties: { p: schema } })

/** The message of the refusal; checks that the host's thread could do other work meanwhile. */
async function refusalOf(work: () => Promise<unknown>): Promise<string> {
  let message = 'taken'
  const stall = await stallDuring(() => work().catch((error: unknown) => (message = (error as Error).message)))
  expect(stall).toBeLessThan(MAX_STALL_MS)
  return message
}

const words = `${'word '.repeat(40)}!`
const deep = Array.from({ length: 40 }).reduce<unknown>((inner) => ({ a: inner }), 1)
const branch = { type: 'object', properties: { a: { $ref: '#/$defs/t' } }, required: ['a'] }
const tree = { $defs: { t: { anyOf: [branch, branch] } } }

describe('JSON Schema: one budget per value, for any schema and value', () => {
  test.each<[string, ToolSchema, unknown]>([
    ['a pattern that backtracks', p({ type: 'string', pattern: '^(\\w+\\s?)*$' }), words],
    [
      'the same for each of 40 items',
      p({ contains: { type: 'string', pattern: '^(\\w+\\s?)*$' } }),
      Array.from({ length: 40 }, () => words),
    ],
    ['the same after a letter', p({ pattern: '^(a|a)*$' }), `${'a'.repeat(40)}!`],
    ['a power of the length', p({ pattern: 'a*a*a*a*b$' }), 'a'.repeat(20_000)],
    [
      'repetitions with bounds',
      p({ pattern: '^[a-z]{0,400}[a-z0-9]{0,400}[a-z]{0,400}[a-z0-9]{0,400}[a-z]{0,400}$' }),
      `${'a'.repeat(2000)}!`,
    ],
    ['unique items', p({ uniqueItems: true }), Array.from({ length: 20_000 }, (_, n) => ({ a: [n, { b: n }] }))],
    ['a format', p({ type: 'string', format: 'url' }), `http://${'a.a@'.repeat(30_000)}`],
  ])('%s', async (_, schema, value) => {
    const tool = prepare(schema)
    expect(await refusalOf(() => tool.validateInput({ p: value }))).toMatch(
      /^f: (the arguments: cannot be checked against the schema within 1000 ms|p: expected a url)/,
    )
  })

  // Each failed alternative adds a problem, so time and memory run out together: a fast machine fills the memory first.
  test('a union that contains itself', async () => {
    const tool = prepare({ ...tree, ...(p({ $ref: '#/$defs/t' }) as object) })
    expect(await refusalOf(() => tool.validateInput({ p: deep }))).toMatch(
      /^f: the arguments: cannot be checked against the schema(?: within 1000 ms|: it takes too much memory)/,
    )
  })

  test('an answer of a tool server, too', async () => {
    const tool = prepare({ type: 'object' }, p({ type: 'string', pattern: '^(a+)+$' }))
    expect(await refusalOf(() => tool.validateOutput({ p: `${'a'.repeat(60)}!` }))).toBe(
      "f: the answer does not match the tool's output schema: it: cannot be checked against the schema within 1000 ms",
    )
  })

  test('a large valid value is accepted, and an invalid one is refused at its first problem', async () => {
    const tool = prepare(
      p({ type: 'array', items: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] } }),
    )
    const rows: object[] = Array.from({ length: 20_000 }, (_, n) => ({ n }))
    expect(await refusalOf(() => tool.validateInput({ p: rows }))).toBe('taken')
    expect(await refusalOf(() => tool.validateInput({ p: [...rows, {}] }))).toBe('f: p[20000].n: is missing')
  })

  test('the message for a key of a million characters is short', async () => {
    const tool = prepare({
      type: 'object',
      properties: {
        p: { type: 'object', additionalProperties: { type: 'object', additionalProperties: { type: 'integer' } } },
      },
    })
    const message = await refusalOf(() => tool.validateInput({ p: { ['k'.repeat(1_000_000)]: { b: 'x' } } }))
    expect(message).toMatch(/^f: the arguments: p\.k{80}….b: expected integer/)
    expect(message.length).toBeLessThan(1200)
  })
})

test('a text that takes six times its memory as JSON is checked, and does not end the process', async () => {
  const json = { type: 'string' }
  const text = JSON.stringify(json)
  expect(await problemByJudge({ json, text }, '\u0001'.repeat(10 * 1024 * 1024))).toBe(undefined)
})

describe('a schema of a library', () => {
  const fields = Array.from({ length: 25 }, (_, n) => [`field${n}`, z.string()] as const)
  const rows = z.object({ p: z.array(z.object(Object.fromEntries(fields))) })

  test('is not called for a value of another shape', async () => {
    const tool = prepare(rows)
    const message = await refusalOf(() => tool.validateInput({ p: Array.from({ length: 60_000 }, () => ({})) }))
    expect(message).toBe('f: p[0].field0: is missing')
  })

  test('checks all other values, with its own messages', async () => {
    const own = z.object({ p: z.array(z.string().min(2, 'is too short')) })
    expect(await refusalOf(() => prepare(own).validateInput({ p: ['x'] }))).toBe('f: p[0]: is too short, got "x"')
  })

  test.each<[string, z.ZodType, unknown, unknown]>([
    ['converts', z.coerce.number(), '1', 1],
    ['has a value in case of need', z.number().catch(7), 'x', 7],
    ['reads', z.preprocess((text) => String(text).length, z.number()), 'abc', 3],
    [
      'changes texts before it checks them',
      z
        .string()
        .trim()
        .toLowerCase()
        .max(3)
        .regex(/^[a-z]+$/),
      '   ABC   ',
      'abc',
    ],
    ['ignores case', z.string().regex(/^[a-z]+$/i), 'ABC', 'ABC'],
    ['rounds', z.number().multipleOf(0.01), 0.07, 0.07],
    ['transforms', z.string().transform((text) => text.length), 'abc', 3],
  ])('accepts its valid values if it %s, however large they are', async (_, schema, given, made) => {
    const tool = prepare(z.object({ p: z.array(schema) }))
    const list = Array.from({ length: 3000 }, () => given)
    expect(await tool.validateInput({ p: list })).toEqual({ p: list.map(() => made) })
  })
})
