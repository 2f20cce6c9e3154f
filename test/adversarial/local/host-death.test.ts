import { LOCAL } from '../engines/tested-local.ts'
import { hostDeath } from '../suites/host-death.ts'

await hostDeath(LOCAL)
