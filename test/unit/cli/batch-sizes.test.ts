import { expect, test } from 'vitest'
import { parseArgs } from '../../../src/cli/args.ts'
import { sizesOf } from '../../../src/cli/batch.ts'
import { flagsFor } from '../../../src/cli/flags.ts'
import { ENGINES } from '../../../src/engines/index.ts'

test.each<[words: string[], cpus: number, concurrency: number, poolSize: number]>([
  [[], 1, 2, 2],
  [[], 2, 2, 2],
  [[], 16, 16, 16],
  [[], 4096, 512, 512],
  [['--concurrency', '1'], 16, 1, 2],
  [['--concurrency', '8'], 2, 8, 8],
  [['--pool-size', '1'], 16, 1, 1],
  [['--concurrency', '8', '--pool-size', '3'], 16, 8, 3],
])('a batch with %j on %d CPUs runs %d requests at a time in %d sandboxes', (words, cpus, concurrency, poolSize) => {
  expect(sizesOf(parseArgs(words, flagsFor(ENGINES).batch), cpus)).toEqual({ concurrency, poolSize })
})
