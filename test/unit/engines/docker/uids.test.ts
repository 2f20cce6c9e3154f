import { expect, test } from 'vitest'
import { Uids } from '../../../../src/engines/docker/uids.ts'

const INFO = {
  version: '1',
  defaultRuntime: 'runc',
  runtimes: ['runc'],
  cgroupVersion: '2',
  architecture: 'x86_64',
  securityOptions: [],
  cpus: 1,
}

test('a uid in use is not given to another container until it is released', () => {
  const dice = [7, 7, 7, 8, 7]
  const uids = new Uids(() => dice.shift() ?? 0)
  expect([uids.draw(INFO), uids.draw(INFO)]).toEqual([7, 8])
  uids.release(7)
  expect(uids.draw(INFO)).toBe(7)
})

test('a uid is from a reserved range, or from the range of a daemon that maps uids', () => {
  const ranges: unknown[] = []
  const uids = new Uids((...range) => ranges.push(range))
  for (const securityOptions of [[], ['name=seccomp', 'name=userns'], ['name=rootless']]) {
    uids.draw({ ...INFO, securityOptions })
  }
  expect(ranges).toEqual([
    [2_000_100_000, 2_100_000_000],
    [20_000, 60_000],
    [20_000, 60_000],
  ])
})
