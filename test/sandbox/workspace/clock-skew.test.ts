import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { faketimeLibrary } from '../../../campaigns/chaos/lane.ts'
import { findStored, WorkspaceLease } from '../../../src/persistence/index.ts'
import { storeInDirectory } from '../../../src/stores/index.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'
import { skipFor } from '../../support/required.ts'

const OWNER = fileURLToPath(new URL('../../support/leasing-owner.main.ts', import.meta.url))
const HOUR_MS = 3_600_000
/** Long enough for an owner to renew it in time on a busy machine. */
const LEASE_MS = 2000

const { skip } = await requireLocalEngine()
const faketime = faketimeLibrary()
if (faketime === undefined) skipFor('local', 'the faketime library is not installed: apt-get install faketime')

describe.skipIf(skip || faketime === undefined)('an owner on another machine', () => {
  test.concurrent.for([
    ['an hour ahead', '+1h', HOUR_MS],
    ['an hour behind', '-1h', -HOUR_MS],
  ] as const)(
    'whose clock is %s keeps its workspace while it lives, and is followed after a lease',
    // The context's own function: vitest's global one can belong to the other test.
    async ([, offset, skewMs], { onTestFinished }) => {
      const directory = mkdtempSync(join(tmpdir(), 'skew-'))
      onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
      const env = {
        ...process.env,
        LD_PRELOAD: faketime,
        FAKETIME: offset,
        FAKETIME_DONT_FAKE_MONOTONIC: '1',
        NO_FAKE_STAT: '1',
      }
      // In a pid namespace of its own, this process cannot see whether it lives.
      const inside = [
        'bwrap',
        '--dev-bind',
        '/',
        '/',
        '--proc',
        '/proc',
        '--unshare-pid',
        '--die-with-parent',
        process.execPath,
      ]
      const options = ['--disable-warning=ExperimentalWarning', OWNER, directory, 'w', String(LEASE_MS)]
      const owner = spawn('env', [...inside, ...options], { env, stdio: ['ignore', 'pipe', 'inherit'] })
      onTestFinished(() => void owner.kill('SIGKILL'))
      const [clock] = (await once(createInterface({ input: owner.stdout }), 'line')) as [string]
      expect(Math.abs(Number(clock) - Date.now() - skewMs)).toBeLessThan(HOUR_MS / 2)

      const store = storeInDirectory(directory)
      const owned = { code: 'workspace_owned' }
      await expect(WorkspaceLease.acquire(store, 'w', { leaseMs: LEASE_MS })).rejects.toMatchObject(owned)
      const patient = WorkspaceLease.acquire(store, 'w', { leaseMs: LEASE_MS, waitMs: 2 * LEASE_MS })
      await expect(patient).rejects.toMatchObject(owned)
      expect((await findStored(store, 'w')).generation).toBe(1)

      owner.kill('SIGKILL')
      await once(owner, 'close')
      const began = performance.now()
      const next = await WorkspaceLease.acquire(store, 'w', { leaseMs: LEASE_MS })
      expect(performance.now() - began).toBeGreaterThanOrEqual(LEASE_MS)
      expect(next.record.generation).toBe(2)
      await next.release()
    },
  )
})
