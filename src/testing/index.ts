export { type ConformanceOptions, engineConformance, type TestBody } from './conformance.ts'
export { replayChannel, type ReplayOptions, type ReplaySandbox, wireLines } from './replay.ts'
