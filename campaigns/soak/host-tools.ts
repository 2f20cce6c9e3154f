import { once } from 'node:events'
import { defineTool, type Tool } from '../../src/index.ts'

const NUMBER = {
  type: 'object',
  properties: { n: { type: 'integer' } },
  required: ['n'],
  additionalProperties: false,
} as const

/** Returns at once. */
export const double: Tool = defineTool({
  name: 'double',
  description: 'Twice the number',
  effect: 'read',
  input: NUMBER,
  execute: ({ n }) => 2 * Number(n),
})

/** Always fails. */
export const broken: Tool = defineTool({
  name: 'broken',
  description: 'Fails',
  effect: 'read',
  input: NUMBER,
  execute: () => {
    throw new Error('it is broken')
  },
})

/** Returns only after the run has ended. */
export const endless: Tool = defineTool({
  name: 'endless',
  description: 'Waits for the end of the run',
  effect: 'read',
  input: NUMBER,
  execute: async (_input, { signal }) => {
    if (!signal.aborted) await once(signal, 'abort')
    return 0
  },
})
