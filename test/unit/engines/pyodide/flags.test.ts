import { execFileSync } from 'node:child_process'
import { beforeAll, expect, test } from 'vitest'
import { STEPS_BEFORE_OPTIMIZING } from '../../../../src/engines/pyodide/guest/flags.ts'

let options: string
beforeAll(() => {
  options = execFileSync(process.execPath, ['--v8-options'], { encoding: 'utf8' })
})

test("the steps after which V8 optimizes a function are this Node's own", () => {
  const [, told] = /--wasm-tiering-budget .*\n.*default: (?:--wasm-tiering-budget=)?(\d+)/.exec(options) ?? []
  expect(Number(told)).toBe(STEPS_BEFORE_OPTIMIZING)
})
