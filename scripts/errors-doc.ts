/** Writes docs/errors.md from the table of codes; test/docs.test.ts compares. */
import { writeFileSync } from 'node:fs'
import { errorsDoc } from '../test/errors-doc.ts'

writeFileSync(new URL('../docs/errors.md', import.meta.url), errorsDoc())
