let naps = 0

/** Answers for the tests of the judge's process. */
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
    case 'starved':
      // Like a process that waits for a processor.
      if (naps++ % 2 === 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 8)
      return input
    case 'native array': {
      const kept: number[] = []
      for (;;) kept.push(1)
    }
    case 'native text':
      return JSON.parse(`[${'0.5,'.repeat(50_000_000)}0]`)
    case 'throw':
      throw new Error('x'.repeat(100_000))
    case 'environment':
      return JSON.stringify(Object.keys(process.env))
    default:
      return input
  }
}
