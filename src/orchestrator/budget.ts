import type { BudgetName } from '../journal/index.ts'
import { refuseUnknown } from '../support/index.ts'

/** The limits on the cost of a run. A run that reaches one ends with its partial result. */
export interface SolveBudget {
  /** Tokens of all prompts and answers. If a model does not count them, four characters count as one token. */
  readonly tokens?: number | undefined
  /** Calls of tools of the host. */
  readonly toolCalls?: number | undefined
  /** Wall-clock time in milliseconds, from the call on. */
  readonly wallMs?: number | undefined
}

const CHARS_PER_TOKEN = 4

/** Counts the cost of a run. */
export class Spending {
  readonly #budget: SolveBudget
  promptTokens = 0
  completionTokens = 0
  toolCalls = 0

  /** @throws TypeError for an unknown budget, one that is not positive, or a number of tool calls that is not whole. */
  constructor(budget: SolveBudget) {
    refuseUnknown('budget', budget, ['tokens', 'toolCalls', 'wallMs'])
    for (const [name, value] of Object.entries(budget)) {
      if (value !== undefined && !(typeof value === 'number' && value > 0)) {
        throw new TypeError(`budget.${name}: must be a number above 0`)
      }
    }
    const { toolCalls = 1 } = budget
    if (Number.isFinite(toolCalls) && !Number.isSafeInteger(toolCalls)) {
      throw new TypeError('budget.toolCalls: must be a whole number')
    }
    this.#budget = budget
  }

  /** Adds a prompt and its answer; `tokens` is null where the model does not count. */
  addAnswer(prompt: { readonly tokens: number | null; readonly chars: number }, answer: typeof prompt): void {
    this.promptTokens += prompt.tokens ?? Math.ceil(prompt.chars / CHARS_PER_TOKEN)
    this.completionTokens += answer.tokens ?? Math.ceil(answer.chars / CHARS_PER_TOKEN)
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
    const { tokens } = this.#budget
    if (tokens !== undefined && this.promptTokens + this.completionTokens >= tokens) return 'tokens'
    return usesTools && this.toolCallsLeft === 0 ? 'tool_calls' : undefined
  }
}

/** The message for a spent budget. */
export function spentText(name: BudgetName, budget: SolveBudget): string {
  switch (name) {
    case 'tokens':
      return `the budget of ${budget.tokens} tokens is spent`
    case 'tool_calls':
      return `the budget of ${budget.toolCalls} tool calls is spent`
    case 'wall_ms':
      return `the budget of ${budget.wallMs} ms is spent`
  }
}
