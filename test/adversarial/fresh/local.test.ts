import { LOCAL } from '../engines/tested-local.ts'
import { freshAttacks } from './suite.ts'

await freshAttacks(LOCAL)
