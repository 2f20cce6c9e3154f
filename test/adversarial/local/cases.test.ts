import { LOCAL } from '../engines/tested-local.ts'
import { acceptanceCases } from '../suites/cases.ts'

await acceptanceCases(LOCAL)
