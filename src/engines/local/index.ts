export { localEngine } from './engine.ts'
export { listRemnants, pruneRemnants, type Remnant } from './leftovers.ts'
export type { LocalEngineOptions } from './options.ts'
