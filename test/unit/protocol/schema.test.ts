import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { PROTOCOL_VERSION } from '../../../src/protocol/index.ts'
import { protocolSchema } from '../../../src/protocol/schema.ts'

const written = readFileSync(join(import.meta.dirname, '../../../src/protocol/schema.json'), 'utf8')

/**
 * The digest of the schema of each protocol version that was released. A change of frames that an older harness or host
 * would not understand needs a new version; any other change needs the new digest here.
 */
const DIGESTS = new Map([[2, '04b1dfbaa0b47489ddc5746f076b33bf03bfb88a01d7e4df1c316656739d05a8']])

test('schema.json matches the schemas of the frames (node scripts/protocol-schema.ts writes it)', () => {
  expect(JSON.parse(written)).toEqual(JSON.parse(JSON.stringify(protocolSchema())))
})

test('the schema belongs to PROTOCOL_VERSION', () => {
  const canonical = JSON.stringify(JSON.parse(written))
  expect(createHash('sha256').update(canonical).digest('hex')).toBe(DIGESTS.get(PROTOCOL_VERSION))
})
