export { didYouMean } from './nearest.ts'
