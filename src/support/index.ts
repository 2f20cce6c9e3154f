export { didYouMean, nearest } from './nearest.ts'
export { isLiving, pidNamespace, startOf, statusOf } from './process-identity.ts'
export { definedOf } from './defined-of.ts'
export { isProgram, programsNamed } from './programs.ts'
