export {
  type CaseSelection,
  type ConformanceCase,
  conformanceCases,
  type ConformanceOptions,
  engineConformance,
  selectCases,
  type TestBody,
  type Wall,
} from './conformance.ts'
export { replayChannel, type ReplayOptions, type ReplaySandbox, wireLines } from './replay.ts'
export { type ScriptedAnswer, type ScriptedModel, scriptedModel } from './scripted-model.ts'
