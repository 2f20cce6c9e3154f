import type { BudgetName } from '../journal/index.ts'
import { refuseUnknown } from '../support/index.ts'

/** What a run may cost. A run that has spent one ends with what it has. */
export interface SolveBudget {
  /** Of all prompts and answers. Where a model does not count, four characters are a token. */
  readonly tokens?: number | undefined
  /** Calls of tools of the host. */
  readonly toolCalls?: number | undefined
  /** Wall clock in milliseconds, from the call on. */
  readonly wallMs?: number | undefined
}

const CHARS_PER_TOKEN = 4

/** Counts what a run costs. */
export class Spending {
  readonly #budget: SolveBudget
  promptTokens = 0
  completionTokens = 0
  toolCalls = 0

  /** @throws TypeError for a budget that does not exist or is no positive number; tool calls are whole. */
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

  /** An answer came; null where the model does not count. */
  answered(prompt: { readonly tokens: number | null; readonly chars: number }, answer: typeof prompt): void {
    this.promptTokens += prompt.tokens ?? Math.ceil(prompt.chars / CHARS_PER_TOKEN)
    this.completionTokens += answer.tokens ?? Math.ceil(answer.chars / CHARS_PER_TOKEN)
  }

  /** Calls of tools that may still be made. */
  get toolCallsLeft(): number {
    return Math.max(0, (this.#budget.toolCalls ?? Number.POSITIVE_INFINITY) - this.toolCalls)
  }

  /**
   * Which budget is spent, so that nothing more may begin.
   * @param usesTools whether it may call tools of the host.
   */
  spent(usesTools: boolean): BudgetName | undefined {
    const { tokens } = this.#budget
    if (tokens !== undefined && this.promptTokens + this.completionTokens >= tokens) return 'tokens'
    return usesTools && this.toolCallsLeft === 0 ? 'tool_calls' : undefined
  }
}

/** A spent budget in words. */
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
