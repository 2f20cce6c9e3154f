import { UsageError } from './failure.ts'

/** One flag of a command. */
export interface FlagSpec {
  /** The name of its value in help, for example `S`. A flag without one takes no value. */
  readonly value?: string
  /** True if the next word is its value even if it begins with `-`, as code may. */
  readonly takesAny?: boolean
}

/** A parsed command line, checked against the flags of its command. */
export interface Given {
  readonly positionals: readonly string[]
  has(flag: string): boolean
  /** The last value of a flag. */
  last(flag: string): string | undefined
  /** Every value of a flag, in order. */
  all(flag: string): readonly string[]
}

const SHORT: ReadonlyMap<string, string> = new Map([['-h', '--help']])

/**
 * Reads `--flag value`, `--flag=value` and positionals in any order; after `--` everything is positional, and `-`
 * always is. A value may start with `-` only in the form `--flag=-value`, so that a forgotten value is noticed.
 * @param unknown the message for a flag that is not among `specs`.
 * @throws UsageError naming the flag.
 */
export function parseArgs(
  argv: readonly string[],
  specs: Readonly<Record<string, FlagSpec>>,
  unknown: (name: string) => string = (name) => `no flag ${name}`,
): Given {
  const values = new Map<string, string[]>()
  const positionals: string[] = []
  const queue = [...argv]
  for (let word = queue.shift(); word !== undefined; word = queue.shift()) {
    if (word === '--') {
      positionals.push(...queue)
      break
    }
    if (word === '-' || !word.startsWith('-')) {
      positionals.push(word)
      continue
    }
    const { name, inline } = split(SHORT.get(word) ?? word)
    const spec = Object.hasOwn(specs, name) ? specs[name] : undefined
    if (spec === undefined) throw new UsageError('invalid_request', unknown(name))
    const value = spec.value === undefined ? refuseValue(name, inline) : (inline ?? takeValue(name, spec, queue))
    values.set(name, [...(values.get(name) ?? []), value])
  }
  return {
    positionals,
    has: (flag) => values.has(flag),
    last: (flag) => values.get(flag)?.at(-1),
    all: (flag) => values.get(flag) ?? [],
  }
}

function split(word: string): { name: string; inline: string | undefined } {
  const at = word.indexOf('=')
  return at === -1 ? { name: word, inline: undefined } : { name: word.slice(0, at), inline: word.slice(at + 1) }
}

function refuseValue(name: string, inline: string | undefined): string {
  if (inline !== undefined) throw new UsageError('invalid_request', `${name} takes no value`)
  return ''
}

function takeValue(name: string, { value, takesAny = false }: FlagSpec, queue: string[]): string {
  const next = queue[0]
  if (next === undefined || (!takesAny && next !== '-' && next.startsWith('-'))) {
    throw new UsageError('invalid_request', `${name} needs a value: ${name} ${value}`)
  }
  queue.shift()
  return next
}
