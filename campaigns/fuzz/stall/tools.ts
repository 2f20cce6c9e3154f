import { setImmediate as nextTurn } from 'node:timers/promises'
import { defineTool, type JsonSchemaObject, mcpTools, type NamedTool, prepareTools } from '../../../src/index.ts'
import { CAPS } from '../../../src/protocol/index.ts'
import { type EntryPoint, keys, many, MiB, NEARLY_SECRET, running, SECRETS } from './entry-point.ts'
import { line } from './peer.ts'

const CALLS = CAPS.argBytes
const ANSWERS_OF_TOOLS = CAPS.answerBytes

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
    // The judge gives up at the last two. Were they close to each other, a little noise would look like growth.
    sizes: [20, 40, 400],
    args: (n) => JSON.stringify(`${'a'.repeat(n)}!`),
    input: withField({ type: 'string', pattern: '^(\\w+\\s?)*$' }),
  },
  {
    name: 'sixty calls against that pattern',
    unit: 'characters',
    sizes: [40, 60],
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

const CALL_ENTRY_POINTS: readonly EntryPoint[] = [
  ...CALLS_OF.map(({ args, input, count = 1, ...rest }): EntryPoint => ({
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

const MCP_ANSWERS: readonly { name: string; unit: string; sizes: readonly number[]; result: (n: number) => object }[] =
  [
    {
      name: 'empty blocks',
      unit: 'blocks',
      sizes: [1000, 20_000, 60_000],
      result: (n) => ({ content: Array.from({ length: n }, () => ({})) }),
    },
    {
      name: 'keys',
      unit: 'keys',
      sizes: [1000, 20_000, 60_000],
      result: (n) => ({ structuredContent: Object.fromEntries(Array.from({ length: n }, (_, at) => [`k${at}`, at])) }),
    },
    {
      name: 'a text of an error',
      unit: 'characters',
      sizes: [10_000, 1_000_000, 8_000_000],
      result: (n) => ({ isError: true, content: [{ type: 'text', text: 'x'.repeat(n) }] }),
    },
  ]

const SERVER_ENTRY_POINTS: readonly EntryPoint[] = [
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
  {
    name: 'tool answer: a text that nearly holds a secret',
    from: 'a tool server',
    unit: 'MiB',
    sizes: [1, 4, 12],
    limitBytes: ANSWERS_OF_TOOLS,
    prepare: (size) => {
      // In one piece: V8 would join the parts of a repeated text when it is read first.
      const answer = Buffer.alloc(size * MiB, NEARLY_SECRET).toString('latin1')
      const big = defineTool({
        name: 'ask',
        description: 'A lot.',
        effect: 'read',
        input: {},
        execute: () => answer,
      })
      return running([line('tool_call', '"id":"c1","name":"ask","args":{}')], { tools: [big], secrets: SECRETS })
    },
  },
  ...MCP_ANSWERS.map(({ result, ...rest }): EntryPoint => ({
    ...rest,
    name: `MCP answer: ${rest.name}`,
    from: 'a tool server',
    limitBytes: ANSWERS_OF_TOOLS,
    prepare: async (size) => {
      const answer = result(size)
      const listed = { tools: [{ name: 'ask', inputSchema: { type: 'object' } }] }
      const client = {
        request: ({ method }: { method: string }) => Promise.resolve(method === 'tools/list' ? listed : answer),
      }
      return running([line('tool_call', '"id":"c1","name":"ask","args":{}')], { tools: await mcpTools(client) })
    },
  })),
]

const referring = (reference: string): object => ({
  type: 'object',
  properties: Object.fromEntries(Array.from({ length: 250 }, (_, at) => [`p${at}`, { $ref: reference }])),
})
const manyOf = (count: number, made: (at: number) => unknown): object =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`f${at}`, made(at)]))

const LISTINGS: readonly { name: string; unit: string; sizes: readonly number[]; schema: object }[] = [
  {
    name: 'a definition in each parameter',
    unit: 'tools',
    sizes: [2, 8, 22],
    schema: {
      $defs: { a: { properties: manyOf(700, () => ({ type: 'integer', minimum: 1 })) } },
      ...referring('#/$defs/a'),
    },
  },
  {
    name: 'definitions that double',
    unit: 'tools',
    sizes: [10, 30, 80],
    schema: {
      $defs: { ...manyOf(40, (at) => ({ anyOf: [1, 2].map(() => ({ $ref: `#/$defs/f${at + 1}` })) })), f40: {} },
      ...referring('#/$defs/f0'),
    },
  },
  {
    name: 'anchors',
    unit: 'tools',
    sizes: [5, 12, 30],
    schema: {
      $defs: { ...manyOf(800, (at) => ({ $anchor: `a${at}` })), z: { $anchor: 'z', anyOf: [{ $ref: '#z' }] } },
      ...referring('#z'),
    },
  },
  {
    name: 'small tools with classes of one name',
    unit: 'tools',
    sizes: [100, 300, 1000],
    schema: { type: 'object', properties: { a: { type: 'object', title: 'T', properties: manyOf(20, () => ({})) } } },
  },
]

/** The tools of a server, up to what prompts, runs and the checker need of them. */
const LISTING_ENTRY_POINTS: readonly EntryPoint[] = LISTINGS.map(({ schema, ...rest }) => ({
  ...rest,
  name: `MCP listing: ${rest.name}`,
  from: 'a tool server',
  limitBytes: 8 * MiB,
  prepare: (size) => {
    const texts = Array.from({ length: size }, (_, at) =>
      JSON.stringify({ name: `t${at}`, inputSchema: schema }).replace('"T"', `"T${at % 3}"`),
    )
    return Promise.resolve({
      act: async () => {
        const tools = await mcpTools({ request: () => Promise.resolve(JSON.parse(`{"tools":[${texts.join(',')}]}`)) })
        await nextTurn()
        const set = prepareTools(tools)
        await nextTurn()
        set.stubs()
        await nextTurn()
        JSON.stringify([set.signatures, set.checked])
      },
      [Symbol.asyncDispose]: () => Promise.resolve(),
    })
  },
}))

/** Calls of a script, and answers of tools. */
export const TOOL_ENTRY_POINTS: readonly EntryPoint[] = [
  ...CALL_ENTRY_POINTS,
  ...SERVER_ENTRY_POINTS,
  ...LISTING_ENTRY_POINTS,
]
