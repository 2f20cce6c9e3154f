/** Lets many in together, or one alone; in the order in which they came. */
export interface SharedLock {
  /** Resolves with what gives the place back. */
  enter(alone: boolean): Promise<() => void>
}

/** Makes one that nobody has. */
export function makeSharedLock(): SharedLock {
  let inside = 0
  let isAlone = false
  const waiting: { readonly alone: boolean; readonly go: () => void }[] = []

  function admit(): void {
    for (;;) {
      const first = waiting[0]
      if (first === undefined || isAlone || (first.alone && inside > 0)) return
      waiting.shift()
      inside += 1
      isAlone = first.alone
      first.go()
    }
  }

  return {
    async enter(alone) {
      await new Promise<void>((go) => {
        waiting.push({ alone, go })
        admit()
      })
      let isOver = false
      return () => {
        if (isOver) return
        isOver = true
        inside -= 1
        isAlone = false
        admit()
      }
    },
  }
}
