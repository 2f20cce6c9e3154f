import { beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { problemByJudge, type SchemaText } from '../../../src/tools/schema-judge.ts'
import type { JsonSchemaObject } from '../../../src/tools/standard-schema.ts'
import { holdsBytes, sizeUpTo } from '../../../src/support/value-size.ts'
import { boundedValidator } from '../../../src/tools/validator.ts'

const MiB = 1024 * 1024
const bytes = new Uint8Array(4 * MiB)
/** The start of the process takes longer than a question. */
beforeAll(async () => {
  await problemByJudge(schemaOf({ type: 'string' }), 'x')
})
const schemaOf = (json: JsonSchemaObject): SchemaText => ({ json, text: JSON.stringify(json) })

describe('the size of a value', () => {
  test.each<[string, unknown, number]>([
    ['null', null, 2],
    ['a text', 'abc', 6],
    ['a list', [1, 'a'], 9],
    ['fields', { ab: 1 }, 11],
    ['bytes', new Uint8Array(10), 13],
    ['a view of numbers', new Float64Array(10), 83],
    ['large bytes', bytes, 2048],
    ['large bytes in a list', [bytes], 2048],
    ['a text that is too long', 'x'.repeat(5000), 2048],
  ])('%s', (_, value, size) => {
    expect(sizeUpTo(value, 2048)).toBe(size)
  })

  test('is counted only up to the limit', () => {
    let read = 0
    const value = Object.defineProperties(
      {},
      Object.fromEntries(
        Array.from({ length: 1000 }, (_, n) => [`field${n}`, { enumerable: true, get: () => (read += 1) }]),
      ),
    )
    expect(sizeUpTo(value, 100)).toBe(100)
    expect(read).toBeLessThan(20)
  })
})

test('a value that takes too much memory is not checked, however short its text', async () => {
  const value = Array.from({ length: 700_000 }).fill({})
  expect(await problemByJudge(schemaOf({ type: 'string' }), value)).toEqual({
    message: 'cannot be checked against the schema: it takes too much memory',
    isUnchecked: true,
  })
})

describe('a value with many bytes', () => {
  const schema = (data: object): SchemaText =>
    schemaOf({ type: 'object', properties: { id: { type: 'string' }, data } })

  test('is checked by the judge with an object without fields in place of the bytes', async () => {
    expect(await problemByJudge(schema({ type: 'object' }), { id: 'x', data: bytes })).toBe(undefined)
  })

  test('has the problems of its other fields', async () => {
    expect(await problemByJudge(schema({}), { id: 1, data: [Buffer.from(bytes.buffer)] })).toEqual({
      path: ['id'],
      message: 'expected string',
    })
  })

  test('is checked itself', async () => {
    expect(await problemByJudge(schemaOf({ type: 'string' }), bytes)).toEqual({ path: [], message: 'expected string' })
  })

  test("is left to the library's schema", async () => {
    const validate = boundedValidator(z.object({ id: z.string(), data: z.instanceof(Uint8Array) }))
    const checked = await validate({ id: 'x', data: bytes })
    // Comparing bytes by value takes most of the time.
    expect((checked as { value: { data: unknown } }).value.data).toBe(bytes)
  })

  test('is searched only to the maximum depth of an answer', () => {
    const endless: unknown[] = [1, { a: 2 }]
    endless.push(endless, endless)
    expect(holdsBytes(endless)).toBe(false)
    expect(holdsBytes([1, { a: [bytes] }])).toBe(true)
  })
})
