import { z } from 'zod'
import { type Failure, ScriptGenerator, type ScriptGeneratorOptions, type StepView } from '../../../src/script/index.ts'
import { defineTool, prepareTools, type ToolSet } from '../../../src/tools/index.ts'

/** Two tools, one of which returns objects. */
export const tools: ToolSet = prepareTools([
  defineTool({
    name: 'orders',
    description: 'Orders of a customer, newest first.',
    effect: 'read',
    input: z.object({ customer: z.string().describe('Such as C-1042.'), limit: z.int().default(10) }),
    output: z.array(z.object({ id: z.string(), total: z.number() })),
    execute: () => [],
  }),
  defineTool({
    name: 'rate',
    description: 'EUR in another currency.',
    effect: 'read',
    input: z.object({ to: z.enum(['USD', 'GBP']) }),
    output: z.number(),
    execute: () => 1,
  }),
])

/** A generator whose prompts have every section. */
export function fullGenerator(options: ScriptGeneratorOptions = {}): ScriptGenerator {
  return new ScriptGenerator({
    tools,
    instructions: 'Amounts are in EUR.',
    modules: ['json', 'math'],
    inputs: { customer: 'C-1042', rows: Array.from({ length: 200 }, (_, n) => n) },
    outputSchema: { type: 'object', properties: { total: { type: 'number' } }, required: ['total'] },
    preamble: 'import math\n\ndef rounded(x):\n    return round(x, 2)\n',
    ...options,
  })
}

/** The outcome of a script that failed at run time. */
export function makeFailure(changes: Partial<Failure> = {}): Failure {
  return {
    script: 'found = orders(customer)\nemit_result({"total": found[0]["totl"]})',
    error: "KeyError: 'totl'",
    traceback:
      'Traceback (most recent call last):\n  File "<script>", line 2, in <module>\n' +
      '    emit_result({"total": found[0]["totl"]})\nKeyError: \'totl\'\n',
    violations: [],
    stdout: 'looking\n',
    stderr: '',
    failedCalls: [],
    writes: [],
    uncertainWrites: [],
    warnings: [],
    repetition: null,
    ...changes,
  }
}

/** A step in the middle of a run. */
export function stepView(changes: Partial<StepView> = {}): StepView {
  return {
    step: 2,
    maxSteps: 10,
    collected: [{ step: 1, label: 'orders', data: [{ id: 'O-1', total: 12.5 }] }],
    failure: undefined,
    forceFinish: false,
    state: null,
    ...changes,
  }
}
