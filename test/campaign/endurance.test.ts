import { expect, test } from 'vitest'
import { createSandglass, memoryStore } from '../../src/index.ts'
import { requireLocalEngine } from '../support/local-engine.ts'
import { heldMemory } from '../support/memory.ts'

const { skip } = await requireLocalEngine()
const MiB = 1024 * 1024

test.skipIf(skip)(
  'a thousand tasks, eight at a time, leave the memory of the host flat',
  async () => {
    await using sg = await createSandglass({ engine: 'local', poolSize: 2 })
    const journal = memoryStore({ maxRuns: 10 })
    const script = 'emit_intermediate("list", list(range(1000)))\nemit_result("x" * 10000)'
    const many = async (count: number): Promise<number> => {
      let left = count
      const worker = async (): Promise<number> => {
        let solved = 0
        while ((left -= 1) >= 0) {
          const { success } = await sg.solve('Anything', { model: async () => script, journal })
          if (success) solved += 1
        }
        return solved
      }
      const done = await Promise.all(Array.from({ length: 8 }, worker))
      return done.reduce((sum, solved) => sum + solved, 0)
    }
    expect(await many(200)).toBe(200)
    const before = heldMemory()
    expect(await many(1000)).toBe(1000)
    // A task kept by mistake would be at least 20 KiB: its script's output alone.
    expect((heldMemory() - before) / MiB).toBeLessThan(4)
  },
  120_000,
)
