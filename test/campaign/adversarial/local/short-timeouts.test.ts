import { LOCAL } from '../../../../campaigns/adversarial/engines/tested-local.ts'
import { shortTimeouts } from '../../../../campaigns/adversarial/suites/short-timeouts.ts'

await shortTimeouts(LOCAL)
