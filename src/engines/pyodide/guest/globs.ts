type Token =
  | { readonly kind: 'one' | 'any' }
  | { readonly kind: 'set'; readonly matches: (character: string) => boolean }
type Part = '**' | { readonly tokens: readonly Token[]; readonly seesDots: boolean }

/**
 * Globs over whole paths, as the harness has them: `**` matches any number of components, other wildcards match within one. A
 * component that begins with a dot matches only where the glob writes the dot, or with `hidden`. Scripts choose names, so no
 * regular expression is matched against them: it can take exponential time.
 */
export class Globs {
  readonly #globs: readonly (readonly Part[])[]
  readonly #hidden: boolean

  constructor(globs: readonly string[], hidden: boolean) {
    this.#globs = globs.map(compileGlob)
    this.#hidden = hidden
  }

  matches(path: string): boolean {
    return this.#globs.some((glob) => closure(glob, this.#statesAfter(glob, path)).includes(glob.length))
  }

  /** True if a glob can match a path below a directory. */
  canMatchBelow(directory: string): boolean {
    return this.#globs.some((glob) => this.#statesAfter(glob, directory).some((state) => state < glob.length))
  }

  /** The positions in a glob that the whole path reaches. */
  #statesAfter(glob: readonly Part[], path: string): number[] {
    let states = [0]
    for (const name of path.split('/')) {
      const next = new Set<number>()
      for (const state of closure(glob, states)) {
        const part = glob[state]
        if (part === undefined) continue
        if (part === '**') {
          if (this.#hidden || !name.startsWith('.')) next.add(state)
        } else if ((this.#hidden || part.seesDots || !name.startsWith('.')) && matchesTokens(part.tokens, name))
          next.add(state + 1)
      }
      states = [...next]
    }
    return states
  }
}

/** Adds the positions behind `**`, which may match no component. */
function closure(glob: readonly Part[], states: readonly number[]): number[] {
  const all = new Set(states)
  for (let state of states) while (glob[state] === '**') all.add((state += 1))
  return [...all]
}

function compileGlob(glob: string): Part[] {
  const parts = glob.replace(/^\/+|\/+$/g, '').split('/')
  if (parts.at(-1) === '**') parts.push('*') // at the end it needs a name to match
  return parts.map((part) =>
    part === '**' ? part : { tokens: compileTokens(Array.from(part)), seesDots: part.startsWith('.') },
  )
}

function compileTokens(characters: readonly string[]): Token[] {
  const tokens: Token[] = []
  for (let at = 0; at < characters.length; at += 1) {
    const character = characters[at] ?? ''
    if (character === '*') tokens.push({ kind: 'any' })
    else if (character === '?') tokens.push({ kind: 'one' })
    else {
      const first = at + (characters[at + 1] === '!' ? 2 : 1)
      const end = character === '[' ? characters.indexOf(']', first + 1) : -1
      if (end === -1) tokens.push({ kind: 'set', matches: (given) => given === character })
      else {
        tokens.push({ kind: 'set', matches: compileSet(characters.slice(first, end), first === at + 2) })
        at = end
      }
    }
  }
  return tokens
}

/** Compiles the characters between brackets: single ones, and ranges `a-c`. */
function compileSet(characters: readonly string[], negated: boolean): (character: string) => boolean {
  const ranges: (readonly [number, number])[] = []
  for (let at = 0; at < characters.length; at += 1) {
    const low = codeOf(characters[at])
    if (characters[at + 1] === '-' && at + 2 < characters.length) {
      ranges.push([low, codeOf(characters[at + 2])])
      at += 2
    } else ranges.push([low, low])
  }
  return (character) => ranges.some(([low, high]) => low <= codeOf(character) && codeOf(character) <= high) !== negated
}

function codeOf(character: string | undefined): number {
  return character?.codePointAt(0) ?? 0
}

/** Backtracks to the last `*` only: the time is at most the product of the lengths. */
function matchesTokens(tokens: readonly Token[], name: string): boolean {
  const characters = Array.from(name)
  let token = 0
  let at = 0
  let back: { readonly token: number; at: number } | undefined
  while (at < characters.length) {
    const next = tokens[token]
    if (next?.kind === 'any') {
      token += 1
      back = { token, at }
    } else if (
      next !== undefined &&
      (next.kind === 'one' || (next.kind === 'set' && next.matches(characters[at] ?? '')))
    ) {
      token += 1
      at += 1
    } else if (back === undefined) return false
    else {
      back.at += 1
      token = back.token
      at = back.at
    }
  }
  return tokens.slice(token).every(({ kind }) => kind === 'any')
}
