import { LOCAL } from '../../../../campaigns/adversarial/engines/tested-local.ts'
import { freshAttacks } from '../../../../campaigns/adversarial/fresh/suite.ts'

await freshAttacks(LOCAL)
