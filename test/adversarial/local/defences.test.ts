import { LOCAL } from '../engines/tested-local.ts'
import { defences } from '../suites/defences.ts'

await defences(LOCAL)
