import { PYODIDE } from '../../../../campaigns/adversarial/engines/tested-pyodide.ts'
import { freshAttacks } from '../../../../campaigns/adversarial/fresh/suite.ts'

await freshAttacks(PYODIDE)
