/** A part of a secret of this length counts as the secret, because exceptions quote the first 200 characters of a value. */
const MIN_PARTIAL_LENGTH = 64
const ASCII = 128
/** Number of states whose transitions are in a table, which takes half a KiB for each. */
const TABLE_ROWS = 128

/**
 * Finds many patterns in one pass over the units of a text (Aho and Corasick). A state stands for the longest suffix of
 * the input that is a prefix of a pattern; 0 stands for none. The time is linear in the length of the text, for any patterns.
 */
export class Automaton {
  readonly #units: number[] = [0]
  readonly #children: number[] = [0]
  readonly #siblings: number[] = [0]
  readonly #depths: number[] = [0]
  readonly #owners: number[] = [-1]
  readonly #first: Map<number, number> = new Map()
  #fallbacks: Int32Array = new Int32Array(1)
  /** The next state for the shallowest states and ASCII, which cover nearly all text. */
  #steps: Int32Array = new Int32Array(ASCII)
  /** The row of each state in these steps; -1 for none. */
  #rows: Int32Array = new Int32Array(1)
  /** For each state the length of the longest pattern that ends there, and of its owner; 0 and -1 for none. */
  #found: Int32Array = new Int32Array(1)
  #foundOwners: Int32Array = new Int32Array(1)

  /** Adds a pattern. If several owners add the same pattern, the first one keeps it. */
  add(units: readonly number[], owner: number): void {
    let state = 0
    for (const unit of units) {
      state = this.#child(state, unit) || this.#grow(state, unit)
      if ((this.#depths[state] ?? 0) >= MIN_PARTIAL_LENGTH) this.#setOwner(state, owner)
    }
    if (state !== 0) this.#setOwner(state, owner)
  }

  /** Completes the automaton. No pattern is added afterwards. */
  build(): this {
    const count = this.#units.length
    this.#fallbacks = new Int32Array(count)
    this.#found = new Int32Array(count)
    this.#foundOwners = new Int32Array(count).fill(-1)
    // In order of depth, because a fallback is always shallower.
    const order = [0]
    for (let index = 0; index < order.length; index += 1) {
      const state = order[index] ?? 0
      this.#settle(state)
      for (const child of this.#childrenOf(state)) {
        if (state !== 0) this.#fallbacks[child] = this.#find(this.#fallbacks[state] ?? 0, this.#units[child] ?? 0)
        order.push(child)
      }
    }
    this.#tabulate(order.slice(0, TABLE_ROWS))
    return this
  }

  /** The state after one more unit. */
  step(from: number, unit: number): number {
    const row = this.#rows[from] ?? -1
    return row >= 0 && unit < ASCII ? (this.#steps[row + unit] ?? 0) : this.#find(from, unit)
  }

  /** True if a pattern continues with the unit. */
  continues(state: number, unit: number): boolean {
    return this.#child(state, unit) !== 0
  }

  /** The number of units that a state stands for. */
  depth(state: number): number {
    return this.#depths[state] ?? 0
  }

  /** The length of the longest pattern that ends in a state, or 0. */
  findLength(state: number): number {
    return this.#found[state] ?? 0
  }

  /** The owner of that pattern. */
  owner(state: number): number {
    return this.#foundOwners[state] ?? -1
  }

  /** The longest suffix of the input that is a prefix of a longer pattern. */
  open(from: number): number {
    let state = from
    while (state !== 0 && this.#children[state] === 0) state = this.#fallbacks[state] ?? 0
    return state
  }

  /** The owner of some pattern that continues from a state. */
  ownerAhead(from: number): number {
    let state = from
    while ((this.#owners[state] ?? -1) === -1 && this.#children[state] !== 0) state = this.#children[state] ?? 0
    return this.#owners[state] ?? -1
  }

  #find(from: number, unit: number): number {
    for (let state = from; state !== 0; state = this.#fallbacks[state] ?? 0) {
      const next = this.#child(state, unit)
      if (next !== 0) return next
    }
    return this.#first.get(unit) ?? 0
  }

  #childrenOf(state: number): number[] {
    if (state === 0) return [...this.#first.values()]
    const children: number[] = []
    for (let child = this.#children[state] ?? 0; child !== 0; child = this.#siblings[child] ?? 0) children.push(child)
    return children
  }

  /** Writes the rows of states, in order of depth: a copy of the fallback's row with the state's own children. */
  #tabulate(states: readonly number[]): void {
    this.#rows = new Int32Array(this.#units.length).fill(-1)
    this.#steps = new Int32Array(states.length * ASCII)
    for (const [index, state] of states.entries()) {
      const row = index * ASCII
      if (state !== 0) {
        const fallback = this.#rows[this.#fallbacks[state] ?? 0] ?? 0
        this.#steps.copyWithin(row, fallback, fallback + ASCII)
      }
      for (const child of this.#childrenOf(state)) {
        const unit = this.#units[child] ?? 0
        if (unit < ASCII) this.#steps[row + unit] = child
      }
      this.#rows[state] = row
    }
  }

  #settle(state: number): void {
    const fallback = this.#fallbacks[state] ?? 0
    const own = this.#owners[state] ?? -1
    this.#found[state] = own === -1 ? this.findLength(fallback) : this.depth(state)
    this.#foundOwners[state] = own === -1 ? this.owner(fallback) : own
  }

  #setOwner(state: number, owner: number): void {
    if (this.#owners[state] === -1) this.#owners[state] = owner
  }

  #child(state: number, unit: number): number {
    if (state === 0) return this.#first.get(unit) ?? 0
    let child = this.#children[state] ?? 0
    while (child !== 0 && this.#units[child] !== unit) child = this.#siblings[child] ?? 0
    return child
  }

  #grow(parent: number, unit: number): number {
    const state = this.#units.length
    this.#units.push(unit)
    this.#children.push(0)
    this.#depths.push(this.depth(parent) + 1)
    this.#owners.push(-1)
    if (parent === 0) {
      this.#siblings.push(0)
      this.#first.set(unit, state)
    } else {
      this.#siblings.push(this.#children[parent] ?? 0)
      this.#children[parent] = state
    }
    return state
  }
}
