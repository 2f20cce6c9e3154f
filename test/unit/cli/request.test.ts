import { expect, test } from 'vitest'
import { ExecutionMode } from '../../../src/executor/index.ts'
import { checkRequest, parseLine, refuseHugeIntegers } from '../../../src/cli/request.ts'

const scriptOf = (script: string): string => checkRequest({ id: 'a', script }, 1, ExecutionMode.INTERACTIVE, {}).script

test('drops a byte order mark at the start of a script, as in a file', () => {
  expect(scriptOf('\uFEFFemit_result(1)')).toBe('emit_result(1)')
  expect(scriptOf('emit_result("\uFEFF")')).toBe('emit_result("\uFEFF")')
})

test('the error for a value beyond a limit names the allowed range in the form of a line', () => {
  const checkLimits = (limits: object): (() => unknown) => {
    return () => checkRequest({ id: 'a', script: '', limits }, 1, ExecutionMode.INTERACTIVE, {})
  }
  expect(checkLimits({ memory_bytes: 82_837_504 })).toThrow(
    'limits.memory_bytes: 82837504 is too little; the least is 83886080 (80 MiB)',
  )
  expect(checkLimits({ disk_bytes: 2 ** 50 })).toThrow(
    'limits.disk_bytes: 1125899906842624 is too much; the most is 1099511627776 (1 TiB)',
  )
  expect(checkLimits({ memory_bytes: '512m' })).toThrow(
    'limits.memory_bytes: "512m" is not a whole number of bytes from 83886080 to 1099511627776',
  )
})

test('rejects an integer with too many digits to be exact; an exponent or a fraction makes a float', () => {
  for (const number of ['1000000000000000000000', '-123456789012345678901234567890']) {
    expect(() => refuseHugeIntegers(`{"inputs":{"a":[{"b":${number}}]}}`)).toThrow(
      `${number} is an integer beyond 2^53, which JSON does not carry exactly; pass it as a string`,
    )
  }
  const fine =
    '{"id":"1000000000000000000000","inputs":{"a":[1e30,1.0000000000000000000000001,"-123456789012345678901234567890"]}}'
  expect(() => refuseHugeIntegers(fine)).not.toThrow()
  expect(parseLine(fine)).toMatchObject({ inputs: { a: [1e30, 1, '-123456789012345678901234567890'] } })
})
