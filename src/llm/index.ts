export type { AiSdkModel } from './ai-sdk.ts'
export { callerOf, type ModelInput } from './caller-of.ts'
export {
  callModel,
  type LLMCallContext,
  type LLMCaller,
  type LLMCallResult,
  type ModelAnswer,
  ModelError,
} from './caller.ts'
export { chatCompletions, type ChatCompletionsOptions } from './chat-completions.ts'
export { digestOf } from './digest.ts'
export { isLangChainModel, type LangChainModel } from './langchain.ts'
export { checkPricing, costOf, type ModelPrice, type Pricing, roundCost } from './pricing.ts'
export { recordModel, replayModel, type ReplayModelOptions } from './recorder.ts'
