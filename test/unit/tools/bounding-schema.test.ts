import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { z as z3 } from 'zod/v3'
import { boundingSchemaOf } from '../../../src/tools/bounding-schema.ts'
import { answer } from '../../../src/tools/schema-answer.ts'
import type { StandardToolSchema } from '../../../src/tools/standard-schema.ts'

/** The verdict of the judge's process on a value for the schema of a library. */
function formProblem(schema: StandardToolSchema, value: unknown): string {
  return answer({ schema: JSON.stringify(boundingSchemaOf(schema)), value: JSON.stringify(value) })
}

describe('the form of a schema of zod', () => {
  test.each<[string, z.ZodType | z3.ZodType, unknown]>([
    ['with a keyword misused as metadata', z.object({ a: z.string().meta({ required: true }) }), { a: 'x' }],
    ['with an example that is no list', z.object({ a: z.string().meta({ examples: 'x' }) }), { a: 'x' }],
    ['undefined among optional items', z.array(z.string().optional()), [undefined, 'x']],
    ['undefined among items with a default', z.array(z.string().default('x')), [undefined]],
    ['undefined among items with a default to check', z.array(z.string().prefault('x')), [undefined]],
    ['undefined in a tuple', z.tuple([z.string().optional(), z.int()]), [undefined, 1]],
    ['undefined in items that are read on', z.array(z.string().optional().readonly()), [undefined]],
    ['undefined among optional items of zod 3', z3.array(z3.string().optional()), [undefined]],
    ['undefined among items with a default of zod 3', z3.array(z3.string().default('x')), [undefined]],
    ['a file', z.array(z.file()), [new File(['x'], 'x.txt')]],
  ])('refuses nothing that zod takes: %s', (_, schema, value) => {
    expect(schema.safeParse(value).success).toBe(true)
    expect(formProblem(schema, value)).toBe('')
  })

  test('still bounds optional items', () => {
    const rows = z.array(z.object({ a: z.string() }).optional())
    expect(JSON.parse(formProblem(rows, [{}]))).toEqual({ path: [0, 'a'], message: 'is missing' })
  })
})
