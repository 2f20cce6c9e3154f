import { performance } from 'node:perf_hooks'
import { defineTool, prepareTools, type Tool } from '../src/tools/index.ts'
import { z } from 'zod'
import { ms, type Row } from './row.ts'

const TOOLS = 200
const PARAMETERS = 20

/** Measures the preparation of 200 tools with 20 parameters each: compiled schemas, signatures and stubs. */
export function toolPreparing(): Row[] {
  // Loads the modules that the first tool needs, so that their load time is not counted.
  prepareTools([jsonTool(0, 'first')])
  prepareTools([zodTool(0, 'first')])
  return [...measurePreparation('JSON Schema', jsonTool), ...measurePreparation('zod', zodTool)]
}

function measurePreparation(what: string, make: (index: number) => Tool): Row[] {
  const tools = Array.from({ length: TOOLS }, (_, index) => make(index))
  const [set, first] = measureSync(() => prepareTools(tools))
  const [, stubs] = measureSync(() => set.stubs())
  const [again, second] = measureSync(() => prepareTools(tools))
  if (again !== set) throw new Error('the tools were prepared twice')
  return [
    { what: `${TOOLS} tools of ${what} with ${PARAMETERS} parameters each, prepared once`, figure: ms(first) },
    { what: `their stubs, ${set.stubs().length} characters`, figure: ms(stubs) },
    { what: 'the same tools given again', figure: ms(second) },
  ]
}

function measureSync<T>(work: () => T): [T, number] {
  const start = performance.now()
  const value = work()
  return [value, performance.now() - start]
}

function jsonTool(index: number, name = `json_tool_${index}`): Tool {
  const properties = Object.fromEntries(
    Array.from({ length: PARAMETERS }, (_, n) => [
      `parameter_${n}`,
      { ...KINDS[n % KINDS.length], description: `The parameter ${n} of the tool ${index}.` },
    ]),
  )
  const input = { type: 'object', properties, required: ['parameter_0'], additionalProperties: false }
  return defineTool({ name, description: `Does the thing ${index}.`, input, execute: () => null })
}

const KINDS: readonly object[] = [
  { type: 'string', minLength: 1 },
  { type: 'integer', minimum: 0, default: 10 },
  { enum: ['a', 'b', 'c'] },
  { type: 'array', items: { type: 'object', properties: { id: { type: 'string' }, n: { type: 'number' } } } },
]

function zodTool(index: number, name = `zod_tool_${index}`): Tool {
  const kinds = [
    z.string().min(1),
    z.int().min(0).default(10),
    z.enum(['a', 'b', 'c']).optional(),
    z.array(z.object({ id: z.string(), n: z.number() })).optional(),
  ]
  const shape = Object.fromEntries(
    Array.from({ length: PARAMETERS }, (_, n) => [
      `parameter_${n}`,
      (kinds[n % kinds.length] ?? z.string()).describe(`The parameter ${n} of the tool ${index}.`),
    ]),
  )
  return defineTool({ name, description: `Does the thing ${index}.`, input: z.object(shape), execute: () => null })
}
