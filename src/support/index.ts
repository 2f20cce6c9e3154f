export { didYouMean, nearest } from './nearest.ts'
export { isLiving, pidNamespace, startOf, statusOf } from './process-identity.ts'
