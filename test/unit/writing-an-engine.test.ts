import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = resolve(import.meta.dirname, '../..')
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')

test('the engine in docs/writing-an-engine.md is the compiled and tested one', () => {
  const example = read('examples/engine/cli-engine.ts').replace("'../../src/engine.ts'", "'sandglass/engine'")
  expect(read('docs/writing-an-engine.md')).toContain(`\`\`\`ts\n${example}\`\`\``)
})
