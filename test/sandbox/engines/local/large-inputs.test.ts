import { expect, test } from 'vitest'
import { createSandglass } from '../../../../src/index.ts'
import { requireLocalEngine } from '../../../support/local-engine.ts'

const { skip } = await requireLocalEngine()

test.skipIf(skip)(
  'runs with large inputs and results leave the memory of their sandbox as it was, and share it',
  async () => {
    await using sg = await createSandglass({ engine: 'local', poolSize: 1, maxOverflow: 0 })
    const numbers = Array.from({ length: 500_000 }, (_, at) => at)
    const uses: number[] = []
    for (let run = 0; run < 4; run += 1) {
      const { sandbox, finalData } = await sg.run('emit_result(len(numbers))', { inputs: { numbers } })
      expect(finalData).toBe(numbers.length)
      uses.push(sandbox.use)
    }
    expect(uses).toEqual([1, 2, 3, 4])
  },
)
