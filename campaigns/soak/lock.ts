/** A lock for many shared holders or one exclusive holder, in order of arrival. */
export interface SharedLock {
  /** Resolves with a function that releases the lock. */
  enter(alone: boolean): Promise<() => void>
}

/** Makes a free lock. */
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
