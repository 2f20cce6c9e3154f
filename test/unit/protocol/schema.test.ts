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
const DIGESTS = new Map([[2, 'febea7bb54f787fe2810aa0655fbc48c85b58f9d88b34819d385d42cf81c3b5f']])

test('schema.json matches the schemas of the frames (node scripts/protocol-schema.ts writes it)', () => {
  expect(JSON.parse(written)).toEqual(JSON.parse(JSON.stringify(protocolSchema())))
})

test('the schema belongs to PROTOCOL_VERSION', () => {
  const canonical = JSON.stringify(JSON.parse(written))
  expect(createHash('sha256').update(canonical).digest('hex')).toBe(DIGESTS.get(PROTOCOL_VERSION))
})
