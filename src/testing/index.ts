export { replayChannel, type ReplayOptions, type ReplaySandbox, wireLines } from './replay.ts'
