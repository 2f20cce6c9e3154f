import { PYODIDE } from '../engines/tested-pyodide.ts'
import { freshAttacks } from './suite.ts'

await freshAttacks(PYODIDE)
