import type { EngineModule } from '../../sandbox/index.ts'
import { pyodideEngine } from './engine.ts'
import type { PyodideEngineOptions } from './options.ts'

/** The engine `pyodide` for the table of engines. Its instances end with the host and leave nothing. */
export const pyodideModule: EngineModule<PyodideEngineOptions> = {
  makeEngine: pyodideEngine,
  reportLines: ({ python_version: version, pyodide, snapshot }) => [
    ['python', `${String(version)} (pyodide ${String(pyodide)})`],
    ['snapshot', String(snapshot)],
  ],
}
