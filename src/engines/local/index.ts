export { localEngine } from './engine.ts'
export { pruneRemnants } from './leftovers.ts'
export { listRemnants, type Remnant } from './remnants.ts'
export type { LocalEngineOptions } from './options.ts'
