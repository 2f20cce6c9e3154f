import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { hasOomKill } from '../../../../src/engines/docker/kernel-log.ts'

const ID = '25501e5f3e37cf2a11650e775026626819e28a15dae970e4e8d38ef6f1d7bc3f'
const OTHER = ID.replace('2', '9')
const directory = mkdtempSync(join(tmpdir(), 'sandglass-kernel-log-'))
afterAll(() => rmSync(directory, { recursive: true }))

const logOf = (text: string): string => {
  const path = join(directory, 'kmsg')
  writeFileSync(path, text)
  return path
}
const killIn = (group: string): string =>
  `6,2315,19535008240,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=${group},mems_allowed=0,oom_memcg=${group},task_memcg=${group},task=exe,pid=3993,uid=65534\n`

describe('the kernel’s log', () => {
  test.each([
    ['of version 1 of control groups', `/docker/${ID}`],
    ['of version 2 below systemd', `/system.slice/docker-${ID}.scope`],
  ])('reports a kill in a container, by its group %s', async (_, group) => {
    expect(await hasOomKill(ID, logOf(`6,1,0,-;usb 1-1\n${killIn(group)}`))).toBe(true)
  })

  test.each([
    ['another container’s', killIn(`/docker/${OTHER}`)],
    ['the machine’s', '6,1,0,-;oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),task=exe,pid=3993,uid=65534\n'],
    ['another message about it', `6,1,0,-;docker0: port 1(veth) entered ${ID}\n`],
    ['nothing', ''],
  ])('does not report %s', async (_, text) => {
    expect(await hasOomKill(ID, logOf(text))).toBe(false)
  })

  test('that cannot be read reports nothing', async () => {
    expect(await hasOomKill(ID, join(directory, 'missing'))).toBe(false)
  })

  test('of this machine can be read to its end', async () => {
    expect(await hasOomKill('0'.repeat(64))).toBe(false)
  })
})
