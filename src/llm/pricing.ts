import { formatValue, refuseUnknown } from '../support/index.ts'

/** The prices of one model, per million tokens, in a currency of your choice. */
export interface ModelPrice {
  readonly input: number
  readonly output: number
  /** The price of prompt tokens that the provider served from its cache. Default: `input`. */
  readonly cachedInput?: number | undefined
}

/**
 * Prices by the name of the model, as its provider reports it. A price also applies to the same name with a date at its end,
 * such as `m-2026-01-31`. If there is only one price, it also applies to a model that does not report its name.
 */
export type Pricing = Readonly<Record<string, ModelPrice>>

/** Tokens of one call. */
export interface TokenUsage {
  readonly promptTokens: number
  /** Of these, the ones from the provider's cache. */
  readonly cachedPromptTokens: number
  readonly completionTokens: number
}

const TOKENS_PER_PRICE = 1_000_000
/** Sums of binary fractions are rounded to this many digits after the point. */
const DIGITS = 9

/** @throws TypeError naming the price that is missing, or is not a number of at least 0. */
export function checkPricing(pricing: Pricing): Pricing {
  if (typeof pricing !== 'object' || pricing === null || Array.isArray(pricing)) {
    throw new TypeError('pricing: must be an object of model names and prices')
  }
  for (const [model, price] of Object.entries(pricing)) {
    const where = `pricing[${JSON.stringify(model)}]`
    if (typeof price !== 'object' || price === null) throw new TypeError(`${where}: must be { input, output }`)
    refuseUnknown(where, price, ['input', 'output', 'cachedInput'])
    for (const name of ['input', 'output', 'cachedInput'] as const) {
      const value: unknown = price[name]
      if (name === 'cachedInput' && value === undefined) continue
      if (!(typeof value === 'number' && Number.isFinite(value) && value >= 0)) {
        throw new TypeError(
          `${where}.${name}: ${formatValue(value)} is not a number of at least 0, the price of a million tokens`,
        )
      }
    }
  }
  return pricing
}

/** The cost of a call, or null if the model has no price. */
export function costOf(model: string | null, usage: TokenUsage, pricing: Pricing): number | null {
  const price = priceOf(model, pricing)
  if (price === undefined) return null
  const { input, output, cachedInput = input } = price
  const cached = Math.min(usage.cachedPromptTokens, usage.promptTokens)
  const total = (usage.promptTokens - cached) * input + cached * cachedInput + usage.completionTokens * output
  return roundCost(total / TOKENS_PER_PRICE)
}

/** Rounds a cost to hide the error of binary fractions. */
export function roundCost(cost: number): number {
  return Number(cost.toFixed(DIGITS))
}

function priceOf(model: string | null, pricing: Pricing): ModelPrice | undefined {
  const names = Object.keys(pricing)
  if (model === null) return names.length === 1 ? pricing[names[0] as string] : undefined
  if (Object.hasOwn(pricing, model)) return pricing[model]
  const undated = model.replace(/-(?:\d{4}-\d{2}-\d{2}|\d{8})$/, '')
  return Object.hasOwn(pricing, undated) ? pricing[undated] : undefined
}
