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
const DIGESTS = new Map([[2, 'a0fd4ae620eaa77e935de2d7d07d5f17d3be2dcb678a043ae73d8721dc102cc6']])

test('schema.json matches the schemas of the frames (node scripts/protocol-schema.ts writes it)', () => {
  expect(JSON.parse(written)).toEqual(JSON.parse(JSON.stringify(protocolSchema())))
})

test('the schema belongs to PROTOCOL_VERSION', () => {
  const canonical = JSON.stringify(JSON.parse(written))
  expect(createHash('sha256').update(canonical).digest('hex')).toBe(DIGESTS.get(PROTOCOL_VERSION))
})
