import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually } from '../../../support/eventually.ts'
import { openDirectory } from '../../../support/state-directory.ts'
import { shown } from '../../driver/answer.ts'
import { startHost } from '../../driver/host-process.ts'
import type { Ground } from '../../driver/stage.ts'
import { inOwnMounts } from './faulty-hosts.ts'
import { trivial, refusalOf } from './hosts.ts'

/** FLT-015. */
export async function fullDiskIsTold({ engine }: Ground): Promise<void> {
  const state = openDirectory('full')
  await using host = startHost(engine, {
    prefix: inOwnMounts(`mount -t tmpfs -o size=16m,mode=755 none ${state}`),
    state,
  })
  await host.open({ poolSize: 1, maxOverflow: 1, maxUses: 1, checkoutTimeoutMs: 15_000 })
  await trivial(host)
  const inside = join(`/proc/${host.pid}/root`, state)
  // A sandbox that was made before the disk was full may serve once more, and each record that is removed makes room for
  // the next one: fill that, too, until a run is refused.
  const fillers: string[] = []
  const refused: Awaited<ReturnType<typeof host.run>>[] = []
  while (refused.length === 0 && fillers.length < 40) {
    fillers.push(join(inside, `filler-${fillers.length}`))
    fill(fillers.at(-1) ?? '')
    const answer = await host.run('emit_result(1)', {})
    if (answer.thrown !== null) refused.push(answer)
  }
  assert.ok(refused.length >= 1, 'every run succeeded on a full disk')
  for (const answer of refused) {
    const told = answer.thrown?.code === 'no_space' || /no space/i.test(answer.thrown?.message ?? '')
    assert.ok(told, shown(answer))
  }
  for (const filler of fillers) rmSync(filler, { force: true })
  const truncated = readdirSync(join(inside, 'sandboxes')).filter((name) => {
    return name.endsWith('.json') && !readFileSync(join(inside, 'sandboxes', name), 'utf8').endsWith('}\n')
  })
  assert.deepEqual(truncated, [], 'truncated records')
  const problem = await eventually(async () => {
    const answer = await host.run('emit_result(1)', {})
    return answer.result?.finalData === 1 ? undefined : shown(answer)
  }, 15_000)
  assert.equal(problem, undefined)
  await trivial(host)
  rmSync(state, { recursive: true, force: true })
}

/** FLT-016. */
export async function readOnlyStateIsTold({ engine }: Ground): Promise<void> {
  const state = openDirectory('read-only')
  await using host = startHost(engine, {
    prefix: inOwnMounts(`mount -t tmpfs -o size=16m,mode=755 none ${state}`),
    state,
  })
  await host.open({ poolSize: 1, maxOverflow: 1, maxUses: 1, checkoutTimeoutMs: 15_000 })
  const inMounts = (...command: readonly string[]): void =>
    void execFileSync('sh', ['-c', `exec nsenter -t ${host.pid} -m "$@"`, 'sh', ...command])
  // A mount that holds files open for writing cannot become read-only: a second one on top can.
  inMounts('mount', '--bind', state, state)
  inMounts('mount', '-o', 'remount,bind,ro', state)
  const answers = [
    await host.run('emit_result(1)', {}),
    await host.run('emit_result(1)', {}),
    await host.run('emit_result(1)', {}),
  ]
  const refused = answers.filter(({ thrown }) => thrown !== null)
  assert.ok(refused.length >= 1, 'every run succeeded on a read-only state directory')
  for (const answer of refused) {
    const told = answer.thrown?.code === 'state_dir_unusable' || /state directory/.test(answer.thrown?.message ?? '')
    assert.ok(told, shown(answer))
  }
  const used = cpuSeconds(host.pid)
  await sleep(1000)
  assert.ok(cpuSeconds(host.pid) - used < 0.7, 'the host is busy with trying again and again')
  inMounts('umount', state)
  const problem = await eventually(async () => {
    const answer = await host.run('emit_result(1)', {})
    return answer.result?.finalData === 1 ? undefined : shown(answer)
  }, 15_000)
  assert.equal(problem, undefined)
  await using started = startHost(engine, {
    prefix: inOwnMounts(`mount -t tmpfs -o size=16m,mode=755 none ${state} && mount -o remount,ro ${state}`),
    state,
  })
  assert.equal((await refusalOf(started)).code, 'state_dir_unusable')
  rmSync(state, { recursive: true, force: true })
}

function fill(path: string): void {
  for (const size of [1 << 20, 1 << 12]) {
    try {
      for (;;) writeFileSync(path, Buffer.alloc(size), { flag: 'a' })
    } catch {
      // full
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
