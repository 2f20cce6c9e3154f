export { pyodideEngine } from './engine.ts'
export type { PyodideEngineOptions } from './options.ts'
