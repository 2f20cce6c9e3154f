export { pyodideEngine } from './engine.ts'
export { pyodideModule } from './module.ts'
export type { PyodideEngineOptions } from './options.ts'
