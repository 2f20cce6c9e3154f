import { PYODIDE } from '../../../../campaigns/adversarial/engines/tested-pyodide.ts'
import { acceptanceCases } from '../../../../campaigns/adversarial/suites/cases.ts'

await acceptanceCases(PYODIDE)
