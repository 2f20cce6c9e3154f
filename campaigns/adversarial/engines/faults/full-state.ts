import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually } from '../../../../test/support/eventually.ts'
import { openDirectory } from '../../../../test/support/state-directory.ts'
import { describeAnswer } from '../../driver/answer.ts'
import { startHost } from '../../driver/host-process.ts'
import type { CaseContext } from '../../driver/case-state.ts'
import { withPrivateMounts } from './faulty-hosts.ts'
import { runTrivialScript, openError } from './hosts.ts'

/** FLT-015: the disk of the state directory is full. Runs fail with the reason and work again afterwards. */
export async function reportsFullDisk({ engine }: CaseContext): Promise<void> {
  const state = openDirectory('full')
  await using host = startHost(engine, {
    prefix: withPrivateMounts(`mount -t tmpfs -o size=16m,mode=755 none ${state}`),
    state,
  })
  await host.open({ poolSize: 1, maxOverflow: 1, maxUses: 1, checkoutTimeoutMs: 15_000 })
  await runTrivialScript(host)
  const inside = join(`/proc/${host.pid}/root`, state)
  // A sandbox from before the disk was full can serve once more, and each removed record makes room for the next one:
  // fill that room as well, until a run fails.
  const fillers: string[] = []
  const failed: Awaited<ReturnType<typeof host.run>>[] = []
  while (failed.length === 0 && fillers.length < 40) {
    fillers.push(join(inside, `filler-${fillers.length}`))
    fill(fillers.at(-1) ?? '')
    const answer = await host.run('emit_result(1)', {})
    if (answer.thrown !== null) failed.push(answer)
  }
  assert.ok(failed.length >= 1, 'every run succeeded on a full disk')
  for (const answer of failed) {
    const isReported = answer.thrown?.code === 'no_space' || /no space/i.test(answer.thrown?.message ?? '')
    assert.ok(isReported, describeAnswer(answer))
  }
  for (const filler of fillers) rmSync(filler, { force: true })
  const truncated = readdirSync(join(inside, 'sandboxes')).filter((name) => {
    return name.endsWith('.json') && !readFileSync(join(inside, 'sandboxes', name), 'utf8').endsWith('}\n')
  })
  assert.deepEqual(truncated, [], 'truncated records')
  const problem = await eventually(async () => {
    const answer = await host.run('emit_result(1)', {})
    return answer.result?.finalData === 1 ? undefined : describeAnswer(answer)
  }, 15_000)
  assert.equal(problem, undefined)
  await runTrivialScript(host)
  rmSync(state, { recursive: true, force: true })
}

/** FLT-016: the state directory is read-only. Runs fail with the reason and work again afterwards. */
export async function reportsReadOnlyState({ engine }: CaseContext): Promise<void> {
  const state = openDirectory('read-only')
  await using host = startHost(engine, {
    prefix: withPrivateMounts(`mount -t tmpfs -o size=16m,mode=755 none ${state}`),
    state,
  })
  await host.open({ poolSize: 1, maxOverflow: 1, maxUses: 1, checkoutTimeoutMs: 15_000 })
  const inMounts = (...command: readonly string[]): void =>
    void execFileSync('sh', ['-c', `exec nsenter -t ${host.pid} -m "$@"`, 'sh', ...command])
  // A mount with files open for writing cannot become read-only, but a second mount on top of it can.
  inMounts('mount', '--bind', state, state)
  inMounts('mount', '-o', 'remount,bind,ro', state)
  const answers = [
    await host.run('emit_result(1)', {}),
    await host.run('emit_result(1)', {}),
    await host.run('emit_result(1)', {}),
  ]
  const failed = answers.filter(({ thrown }) => thrown !== null)
  assert.ok(failed.length >= 1, 'every run succeeded on a read-only state directory')
  for (const answer of failed) {
    const isReported =
      answer.thrown?.code === 'state_dir_unusable' || /state directory/.test(answer.thrown?.message ?? '')
    assert.ok(isReported, describeAnswer(answer))
  }
  const used = cpuSeconds(host.pid)
  await sleep(1000)
  assert.ok(cpuSeconds(host.pid) - used < 0.7, 'the host retries in a busy loop')
  inMounts('umount', state)
  const problem = await eventually(async () => {
    const answer = await host.run('emit_result(1)', {})
    return answer.result?.finalData === 1 ? undefined : describeAnswer(answer)
  }, 15_000)
  assert.equal(problem, undefined)
  await using started = startHost(engine, {
    prefix: withPrivateMounts(`mount -t tmpfs -o size=16m,mode=755 none ${state} && mount -o remount,ro ${state}`),
    state,
  })
  assert.equal((await openError(started)).code, 'state_dir_unusable')
  rmSync(state, { recursive: true, force: true })
}

function fill(path: string): void {
  for (const size of [1 << 20, 1 << 12]) {
    try {
      for (;;) writeFileSync(path, Buffer.alloc(size), { flag: 'a' })
    } catch {
      // The disk is full.
    }
  }
  chmodSync(path, 0o600)
}

function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ')
  return (Number(fields[11]) + Number(fields[12])) / 100
}
