import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { publicSchema } from '../../support/cli/line-schemas.ts'

const path = join(import.meta.dirname, '../../../docs/schema/result-line.schema.json')

/** `SANDGLASS_WRITE_SCHEMA=1 npx vitest run test/unit/cli/schema.test.ts` updates it. */
test('docs/schema/result-line.schema.json is the schema with which the tests check every line', () => {
  const schema: unknown = JSON.parse(JSON.stringify(publicSchema()))
  if (process.env['SANDGLASS_WRITE_SCHEMA'] === '1') {
    writeFileSync(path, JSON.stringify(schema))
    execFileSync('npx', ['oxfmt', path])
  }
  expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual(schema)
})
