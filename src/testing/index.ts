export { type ConformanceOptions, engineConformance, type TestBody } from './conformance.ts'
export { replayChannel, type ReplayOptions, type ReplaySandbox, wireLines } from './replay.ts'
export { type ScriptedAnswer, type ScriptedModel, scriptedModel } from './scripted-model.ts'
