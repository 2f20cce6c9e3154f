import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { localEngine } from '../../../../src/engines/local/index.ts'
import { requireLocalEngine } from '../../../support/local-engine.ts'
import { scopedDirectory } from '../../../support/engines/local/state-dir.ts'

const { skip } = await requireLocalEngine()

// Messages of bubblewrap 0.3 to 0.11, with and without the advice that some distributions add.
const FORBIDDEN = [
  'unshare user ns: Operation not permitted',
  'unshare user ns: No space left on device',
  'No permissions to creating new namespace',
  'No permissions to create new namespace, likely because the kernel does not allow non-privileged user namespaces.',
  'No permissions to create a new namespace',
  'Creating new namespace failed: Operation not permitted',
  'setting up uid map: Permission denied',
  'loopback: Failed RTM_NEWADDR: Operation not permitted',
]
const OTHER = ["Can't mount proc on /newroot/proc: Operation not permitted", 'Unknown option --disable-userns']

describe.skipIf(skip)('a bubblewrap that fails', () => {
  test.each([
    ...FORBIDDEN.map((words) => [words, 'userns_forbidden'] as const),
    ...OTHER.map((words) => [words, 'sandbox_setup_failed'] as const),
  ])('%s: %s', async (words, code) => {
    using directory = scopedDirectory()
    const bwrap = join(directory.path, 'bwrap')
    writeFileSync(bwrap, `#!/bin/sh\ncat >&2 <<'end'\nbwrap: ${words}\nend\nexit 1\n`, { mode: 0o755 })
    const engine = localEngine({ stateDir: join(directory.path, 'state'), bwrap })
    try {
      const { usable, reasons } = await engine.report()
      expect([usable, reasons.map((reason) => reason.code)]).toEqual([false, [code]])
      expect(reasons[0]?.message).toContain(words)
    } finally {
      await engine.close()
    }
  })
  test('is understood although it ends before what it says is read', async () => {
    using directory = scopedDirectory()
    const bwrap = join(directory.path, 'bwrap')
    const said = 'bwrap: Creating new namespace failed: Operation not permitted'
    // The writer is a copy of the inner shell. A copy of the outer one would have its command line, and the engine kills those.
    const script = `#!/bin/sh\nsh -c "{ sleep 0.1; echo '${said}' >&2; } &"\nexit 1\n`
    writeFileSync(bwrap, script, { mode: 0o755 })
    const engine = localEngine({ stateDir: join(directory.path, 'state'), bwrap })
    const { reasons } = await engine.report()
    await engine.close()
    expect(reasons.map(({ code }) => code)).toEqual(['userns_forbidden'])
  })
})
