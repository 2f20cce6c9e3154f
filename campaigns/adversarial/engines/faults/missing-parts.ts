import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openDirectory } from '../../../../test/support/state-directory.ts'
import { describeAnswer } from '../../driver/answer.ts'
import { startHost } from '../../driver/host-process.ts'
import type { CaseContext } from '../../driver/case-state.ts'
import { withPrivateMounts, withoutSeccomp, withoutUserNamespaces } from './faulty-hosts.ts'
import { openError } from './hosts.ts'

/** FLT-013: without bubblewrap or user namespaces the engine does not open, and the error says how to fix it. */
export async function refusesToRunWithoutBubblewrap({ engine }: CaseContext): Promise<void> {
  const bin = openDirectory('bin')
  const withBwrap = (name: string, make: (path: string) => void): string => {
    const directory = join(bin, name)
    mkdirSync(directory)
    make(join(directory, 'bwrap'))
    return directory
  }
  // Links to all programs that the engine needs except bwrap, wherever they are installed.
  const others = withBwrap('others', () => {})
  for (const program of ['python3', 'flock', 'sh', 'sleep']) {
    symlinkSync(execFileSync('sh', ['-c', `command -v ${program}`], { encoding: 'utf8' }).trim(), join(others, program))
  }
  const isFalse = withBwrap('false', (path) => symlinkSync('/bin/false', path))
  const notExecutable = withBwrap('plain', (path) => writeFileSync(path, '#!/bin/sh\n', { mode: 0o644 }))
  const faults = [
    { start: { env: { PATH: others } }, codes: ['bubblewrap_missing'], remedy: /bubblewrap|bwrap/ },
    {
      start: { env: { PATH: `${isFalse}:${others}` } },
      codes: ['sandbox_setup_failed', 'bubblewrap_missing'],
      remedy: /bubblewrap|bwrap/,
    },
    {
      start: { env: { PATH: `${notExecutable}:${others}` } },
      codes: ['bubblewrap_missing'],
      remedy: /bubblewrap|bwrap/,
    },
    { start: withoutUserNamespaces(), codes: ['userns_forbidden'], remedy: /max_user_namespaces/ },
  ]
  for (const { start, codes, remedy } of faults) {
    await using host = startHost(engine, start)
    const error = await openError(host)
    assert.ok(codes.includes(error.code), `${error.code}: ${error.message}`)
    assert.match(error.message, remedy)
  }
  rmSync(bin, { recursive: true })
}

/** FLT-014: without seccomp the engine does not open; without control groups it reports the missing limits. */
export async function failsClosedOrReportsMissingControls({ engine }: CaseContext): Promise<void> {
  await using noFilter = startHost(engine, withoutSeccomp())
  const error = await openError(noFilter)
  assert.ok(['harness_start_failed', 'sandbox_setup_failed'].includes(error.code), `${error.code}: ${error.message}`)

  const state = openDirectory('no-cgroup')
  await using noGroups = startHost(engine, { prefix: withPrivateMounts('mount -t tmpfs none /sys/fs/cgroup'), state })
  await noGroups.open({ poolSize: 1 })
  const answer = await noGroups.run('emit_result(1)', {})
  assert.deepEqual(answer.result?.sandbox.limitsEnforced, ['pids', 'disk', 'output', 'wall'], describeAnswer(answer))
  const report = await noGroups.report()
  assert.ok(report.reasons.some(({ code, remedy }) => code === 'no_cgroup' && remedy !== ''))
  assert.deepEqual(report.limitsEnforced, ['pids', 'disk', 'output', 'wall'])
  await using strict = startHost(engine, { prefix: withPrivateMounts('mount -t tmpfs none /sys/fs/cgroup'), state })
  assert.equal((await openError(strict, { require: ['memory'] })).code, 'requirement_unmet')
  rmSync(state, { recursive: true, force: true })
}
