/** Writes the generated parts of the docs (`npm run docs`). test/unit/docs.test.ts compares them. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { GENERATED } from './docs/generated.ts'
import { withGenerated } from './docs/section.ts'

const ROOT = resolve(import.meta.dirname, '..')

for (const section of GENERATED) {
  const path = join(ROOT, section.page)
  const page = readFileSync(path, 'utf8')
  const written = withGenerated(page, section)
  if (written === page) continue
  writeFileSync(path, written)
  console.log(`wrote ${section.name} in ${section.page}`)
}
