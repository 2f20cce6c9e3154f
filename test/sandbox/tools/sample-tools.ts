import { type Mock, vi } from 'vitest'
import { z } from 'zod'
import { defineTool, type Tool } from '../../../src/tools/index.ts'

/** Adds two numbers; the second defaults to 1. */
export const add: Tool = defineTool({
  name: 'add',
  description: 'Adds two numbers.',
  input: z.object({ a: z.number(), b: z.number().default(1) }),
  output: z.number(),
  effect: 'read',
  execute: ({ a, b }) => a + b,
})

/** A tool that counts its executions. */
export function counter(name = 'count'): { readonly tool: Tool; readonly execute: Mock<(input: unknown) => unknown> } {
  const execute = vi.fn<(input: unknown) => unknown>((input) => input)
  return { execute, tool: defineTool({ name, description: '', input: z.object({ n: z.int().optional() }), execute }) }
}
