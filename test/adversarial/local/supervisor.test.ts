import { LOCAL } from '../engines/tested-local.ts'
import { supervisor } from '../suites/supervisor.ts'

await supervisor(LOCAL)
