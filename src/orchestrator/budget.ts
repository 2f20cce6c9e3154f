import type { BudgetName } from '../journal/index.ts'
import { costOf, type ModelAnswer, type Pricing, roundCost } from '../llm/index.ts'
import { formatValue, refuseUnknown } from '../support/index.ts'

/** The limits on the cost of a task. A task that reaches a limit ends with its partial result. */
export interface SolveBudget {
  /** Tokens of all prompts and answers. If a model does not count them, four characters count as one token. */
  readonly tokens?: number | undefined
  /** Calls of tools of the host. */
  readonly toolCalls?: number | undefined
  /** Wall-clock time in milliseconds, from the call on. */
  readonly wallMs?: number | undefined
  /** Cost of all prompts and answers by `pricing`, in its currency. A model without a price ends the task. */
  readonly cost?: number | undefined
}

const CHARS_PER_TOKEN = 4

/** Counts the cost of a task. */
export class Spending {
  readonly #budget: SolveBudget
  readonly #pricing: Pricing
  promptTokens = 0
  completionTokens = 0
  toolCalls = 0
  /** Null once the cost of a call is unknown. */
  cost: number | null

  /**
   * @throws TypeError for an unknown budget, a budget that is not positive, a fractional number of tool calls, or a cost budget
   * without prices.
   */
  constructor(budget: SolveBudget, pricing: Pricing = {}) {
    refuseUnknown('budget', budget, ['tokens', 'toolCalls', 'wallMs', 'cost'])
    for (const [name, value] of Object.entries(budget)) {
      if (value !== undefined && !(typeof value === 'number' && value > 0)) {
        throw new TypeError(`budget.${name}: ${formatValue(value)} is not a number above 0`)
      }
    }
    const { toolCalls = 1 } = budget
    if (Number.isFinite(toolCalls) && !Number.isSafeInteger(toolCalls)) {
      throw new TypeError(`budget.toolCalls: ${toolCalls} is not a whole number`)
    }
    const hasPrices = Object.keys(pricing).length > 0
    if (budget.cost !== undefined && !hasPrices) {
      throw new TypeError('budget.cost: needs the prices of the model, pricing: { NAME: { input, output } }')
    }
    this.#budget = budget
    this.#pricing = pricing
    this.cost = hasPrices ? 0 : null
  }

  /** Adds an answer and its prompt. @returns the cost of both, or null if it is not known. */
  addAnswer(promptChars: number, answer: ModelAnswer): number | null {
    const promptTokens = answer.promptTokens ?? estimateTokens(promptChars)
    const completionTokens = answer.completionTokens ?? estimateTokens(answer.text.length)
    this.promptTokens += promptTokens
    this.completionTokens += completionTokens
    const cachedPromptTokens = answer.cachedPromptTokens ?? 0
    const cost = costOf(answer.model, { promptTokens, cachedPromptTokens, completionTokens }, this.#pricing)
    this.cost = this.cost === null || cost === null ? null : roundCost(this.cost + cost)
    return cost
  }

  /** Tool calls that the budget still allows. */
  get toolCallsLeft(): number {
    return Math.max(0, (this.#budget.toolCalls ?? Number.POSITIVE_INFINITY) - this.toolCalls)
  }

  /**
   * Finds a budget that is spent.
   * @param usesTools true if the next attempt may call tools of the host.
   */
  findSpent(usesTools: boolean): BudgetName | undefined {
    const { tokens, cost } = this.#budget
    if (tokens !== undefined && this.promptTokens + this.completionTokens >= tokens) return 'tokens'
    if (cost !== undefined && (this.cost === null || this.cost >= cost)) return 'cost'
    return usesTools && this.toolCallsLeft === 0 ? 'tool_calls' : undefined
  }
}

function estimateTokens(chars: number): number {
  return Math.ceil(chars / CHARS_PER_TOKEN)
}

/** The message for a spent budget. */
export function describeSpentBudget(name: BudgetName, budget: SolveBudget): string {
  switch (name) {
    case 'tokens':
      return `the budget of ${budget.tokens} tokens is spent`
    case 'tool_calls':
      return `the budget of ${budget.toolCalls} tool calls is spent`
    case 'cost':
      return `the cost budget of ${budget.cost} is spent`
    case 'wall_ms':
      return `the budget of ${budget.wallMs} ms is spent`
  }
}
