import { expect, test } from 'vitest'
import { CpuQuota } from '../../../src/sandbox/index.ts'

/** A quota of 1, and what was written in order; writes fail while `isBroken`. */
class Group {
  readonly written: (number | null)[] = []
  isBroken = false
  readonly cpu = new CpuQuota(1, async (cpus) => {
    await Promise.resolve()
    if (this.isBroken) throw new Error('EIO')
    this.written.push(cpus)
  })
}

const end = async (changed: AsyncDisposable): Promise<void> => {
  await changed[Symbol.asyncDispose]()
}

test('the lowest of several limits applies, in whatever order they end', async () => {
  const { cpu, written } = new Group()
  const half = await cpu.lower(0.5)
  const fifth = await cpu.lower(0.2)
  const more = await cpu.lower(4)
  await end(half)
  await end(half)
  await end(fifth)
  await end(more)
  expect(written).toEqual([0.5, 0.2, 1])
})

test('a lift comes before every limit, and the least of those still there is restored', async () => {
  const { cpu, written } = new Group()
  const half = await cpu.lower(0.5)
  const [first, second] = [cpu.lift(), cpu.lift()]
  await end(first)
  const fifth = await cpu.lower(0.2)
  await end(half)
  await end(second)
  await end(fifth)
  expect(written).toEqual([0.5, null, 0.2, 1])
})

test('a lift and its end at once leave the limit in force', async () => {
  const { cpu, written } = new Group()
  await Promise.all([end(cpu.lift()), end(cpu.lift()), cpu.lower(0.5)])
  expect(written.at(-1)).toBe(0.5)
})

test('a limit that cannot be set is not kept, and one that cannot be restored is written by the next change', async () => {
  const group = new Group()
  const { cpu, written } = group
  group.isBroken = true
  await expect(cpu.lower(0.5)).rejects.toThrow('EIO')
  await expect(end(cpu.lift())).rejects.toThrow('EIO')
  group.isBroken = false
  await end(cpu.lift())
  expect(written.at(-1)).toBe(1)
  const half = await cpu.lower(0.5)
  group.isBroken = true
  await expect(end(half)).rejects.toThrow('EIO')
  group.isBroken = false
  await end(await cpu.lower(2))
  expect(written).toEqual([1, 0.5, 1])
})
