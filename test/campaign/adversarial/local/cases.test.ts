import { LOCAL } from '../../../../campaigns/adversarial/engines/tested-local.ts'
import { acceptanceCases } from '../../../../campaigns/adversarial/suites/cases.ts'

await acceptanceCases(LOCAL)
