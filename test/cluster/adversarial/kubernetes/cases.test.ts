import { KUBERNETES } from '../../../../campaigns/adversarial/engines/tested-kubernetes.ts'
import { acceptanceCases } from '../../../../campaigns/adversarial/suites/cases.ts'

await acceptanceCases(KUBERNETES)
