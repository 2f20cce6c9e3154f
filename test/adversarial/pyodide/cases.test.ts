import { PYODIDE } from '../engines/tested-pyodide.ts'
import { acceptanceCases } from '../suites/cases.ts'

await acceptanceCases(PYODIDE)
