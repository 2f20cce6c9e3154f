import { chmodSync, chownSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import type { SandboxReport } from '../../../../src/sandbox/index.ts'
import { requireLocalEngine } from '../../../support/local-engine.ts'
import { HostPlace, NEEDS_ROOT, ORDINARY } from './host-place.ts'
import { refusal } from './refusal.ts'

const { skip } = await requireLocalEngine()
const place = new HostPlace()
afterAll(() => place[Symbol.dispose]())

describe.skipIf(skip)('the state directory', () => {
  test('one that cannot be created or written is named with the remedy', () => {
    const file = join(place.path, 'a-file')
    writeFileSync(file, '')
    const { code, message, remedy } = refusal(place.report({ engine: { stateDir: join(file, 'state') } }).report)
    expect([code, message.includes(file), message.includes('SANDGLASS_STATE_DIR')]).toEqual([
      'state_dir_unusable',
      true,
      true,
    ])
    expect(remedy).toContain('SANDGLASS_STATE_DIR')
  })

  const masked = ['sh', '-c', 'umask 077 && exec "$@"', 'sh']

  test.skipIf(NEEDS_ROOT)('sandboxes can enter one that was made under a strict umask', () => {
    const path = join(place.stateDir(), 'made/here')
    const { report, result } = place.report(
      { engine: { stateDir: path }, script: 'emit_result(1)' },
      { wrapper: masked },
    )
    expect([report.usable, result?.finalData]).toEqual([true, 1])
  })

  test.skipIf(NEEDS_ROOT)('one below a directory that sandboxes cannot enter is refused, naming that directory', () => {
    const closed = join(place.stateDir(), 'closed')
    mkdirSync(closed, { mode: 0o700 })
    const { code, message } = refusal(place.report({ engine: { stateDir: join(closed, 'state') } }).report)
    expect(code).toBe('state_dir_unusable')
    expect(message).toMatch(new RegExp(`uid 2000000000 cannot enter ${closed}: chmod o\\+x it`))
    const own = place.stateDir()
    chmodSync(own, 0o700)
    expect(refusal(place.report({ engine: { stateDir: own } }).report).message).toContain(`cannot enter ${own}:`)
  })

  test('one that others can write to is refused, because every sandbox runs its staged files first', () => {
    for (const name of ['', 'staged', 'sandboxes']) {
      for (const mode of [0o777, 0o775]) {
        const path = place.stateDir()
        mkdirSync(join(path, name), { recursive: true })
        chmodSync(join(path, name), mode)
        const { code, message } = refusal(place.report({ engine: { stateDir: path } }).report)
        expect(code).toBe('state_dir_unusable')
        expect(message).toContain(`${join(path, name)} can be written by others: chmod go-w it`)
      }
    }
  })

  test.skipIf(NEEDS_ROOT)('one of another user is refused, for root as well', () => {
    const { code, message } = refusal(place.report({ engine: { stateDir: place.stateDir(ORDINARY) } }).report)
    expect([code, message.includes(`belongs to uid ${ORDINARY}`)]).toEqual(['state_dir_unusable', true])
    const path = place.stateDir()
    mkdirSync(join(path, 'staged'))
    chownSync(join(path, 'staged'), ORDINARY, ORDINARY)
    expect(refusal(place.report({ engine: { stateDir: path } }).report).message).toContain(
      `${path}/staged belongs to uid ${ORDINARY}`,
    )
  })

  test.skipIf(NEEDS_ROOT)('one that belongs to somebody else is unusable for an ordinary user', () => {
    const closed = join(place.path, 'of-root')
    mkdirSync(closed, { mode: 0o755 })
    const { report } = place.report({ engine: { stateDir: closed } }, { uid: ORDINARY })
    expect(refusal(report).code).toBe('state_dir_unusable')
  })

  test.skipIf(NEEDS_ROOT)('on a full disk, it reports no_space, and works again once there is space', () => {
    const directory = join(place.path, 'small')
    mkdirSync(directory, { mode: 0o755 })
    const small = [
      'unshare',
      '-m',
      'sh',
      '-c',
      `mount -t tmpfs -o size=4m,mode=755 none ${directory} && exec "$@"`,
      'sh',
    ]
    const [full, freed] = place.run<SandboxReport>(
      { act: 'full-disk', engine: { stateDir: directory } },
      { wrapper: small },
    )
    expect(full === undefined ? undefined : refusal(full)).toEqual({
      code: 'no_space',
      message: `no space left for the state directory ${directory}: free some, then try again`,
      remedy: 'free space on the file system of the state directory',
    })
    expect([freed?.usable, freed?.reasons.filter(({ severity }) => severity === 'error')]).toEqual([true, []])
  })
})
