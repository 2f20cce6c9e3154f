/** Writes `src/protocol/schema.json`, the wire protocol as JSON Schema: `node scripts/protocol-schema.ts`. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { protocolSchema } from '../src/protocol/schema.ts'

const path = join(import.meta.dirname, '../src/protocol/schema.json')
writeFileSync(path, `${JSON.stringify(protocolSchema(), null, 2)}\n`)
console.log(`wrote ${path}`)
