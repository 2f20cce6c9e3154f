import { expect, test } from 'vitest'
import { firstSandboxUid } from '../../../../src/engines/local/uids.ts'

/** Reads id maps of an invented machine. */
function maps(uids: string, gids: string): (path: string) => string {
  return (path) => (path.endsWith('uid_map') ? uids : gids)
}
const ALL = '         0          0 4294967295\n'
const NARROW = '         0     100000      65536\n'
const ONE = '0 1000 1\n'

test('uids of sandboxes start far above those of users, or within a narrow map', () => {
  expect(firstSandboxUid(maps(ALL, ALL))).toBe(2_000_000_000)
  expect(firstSandboxUid(maps(NARROW, NARROW))).toBe(30_000)
  expect(firstSandboxUid(maps(ONE, ONE))).toBeUndefined()
})

test('an id is used only if it is mapped as a group, too', () => {
  expect(firstSandboxUid(maps(ALL, NARROW))).toBe(30_000)
  expect(firstSandboxUid(maps(NARROW, ONE))).toBeUndefined()
})
