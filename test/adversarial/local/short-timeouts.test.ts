import { LOCAL } from '../engines/tested-local.ts'
import { shortTimeouts } from '../suites/short-timeouts.ts'

await shortTimeouts(LOCAL)
