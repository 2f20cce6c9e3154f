/** Answers for the tests of the judge's thread. */
export function answer(input: unknown): unknown {
  switch (input) {
    case 'loop':
      for (;;) continue
    case 'backtrack':
      return /^(\w+\s?)*$/.test(`${'a'.repeat(60)}!`)
    case 'memory': {
      const kept: object[][] = []
      for (;;) kept.push(Array.from({ length: 10_000 }, () => ({ a: 1 })))
    }
    case 'throw':
      throw new Error('x'.repeat(100_000))
    case 'environment':
      return JSON.stringify(process.env)
    default:
      return input
  }
}
