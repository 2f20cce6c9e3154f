import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { LABEL, ownerLabels } from '../../../../src/engines/docker/owner.ts'
import { docker } from '../../../../test/support/containers.ts'
import { startHost } from '../../driver/host-process.ts'
import type { CaseContext } from '../../driver/case-state.ts'
import { daemonOf, imageOf } from '../docker.ts'
import { runTrivialScript } from './hosts.ts'

/** FLT-025: the records of this engine are labels. Containers with corrupt labels are kept, because their owner is unknown. */
export async function ignoresForeignLabels({ engine }: CaseContext): Promise<void> {
  const daemon = daemonOf(engine)
  const { [LABEL.owner]: own = '', [LABEL.bootId]: bootId = '' } = ownerLabels()
  const [namespace = ''] = own.split(':')
  const garbled: Record<string, string>[] = [
    {},
    { [LABEL.owner]: '', [LABEL.bootId]: '' },
    { [LABEL.owner]: '\u{1f4a5}"{}', [LABEL.bootId]: bootId },
    { [LABEL.owner]: 'x'.repeat(10_000), [LABEL.bootId]: bootId },
    { [LABEL.owner]: namespace, [LABEL.bootId]: bootId },
    { [LABEL.owner]: `${namespace}:`, [LABEL.bootId]: bootId },
    { [LABEL.owner]: `${namespace}:-1:5`, [LABEL.bootId]: bootId },
    { [LABEL.owner]: `${namespace}:../../etc:5`, [LABEL.bootId]: bootId },
    { [LABEL.owner]: `${namespace}:1e3:5`, [LABEL.bootId]: bootId },
    { [LABEL.owner]: `${namespace}:999999:`, [LABEL.bootId]: bootId },
    { [LABEL.owner]: `1:999999:5`, [LABEL.bootId]: bootId },
    { [LABEL.owner]: `${namespace}:999999:5`, [LABEL.bootId]: randomUUID() },
  ]
  const names = garbled.map((labels) => {
    const name = `sandglass-${randomUUID()}`
    const all = Object.entries({ ...labels, [LABEL.sandbox]: name }).flatMap(([key, value]) => [
      '--label',
      `${key}=${value}`,
    ])
    docker(daemon, 'create', '--network', 'none', '--name', name, ...all, imageOf(engine), 'true')
    return name
  })
  try {
    await using living = startHost(engine)
    await living.open({ poolSize: 1 })
    await runTrivialScript(living)
    const good = engine.sandboxesOf(living.pid)
    await using host = startHost(engine)
    await host.open({ poolSize: 1 })
    await Promise.all([host, living].map(runTrivialScript))
    const resources = await engine.resourcesOf(new Set(names))
    const owners = names.map((name) => resources.find(({ id }) => id === name)?.owner ?? 'removed')
    assert.deepEqual(
      owners.map((owner, index) => [garbled[index], owner]),
      garbled.map((labels) => [labels, 'unknown']),
    )
    assert.deepEqual(
      good.filter((id) => engine.processesOf(id).length === 0),
      [],
      'a living sandbox was lost',
    )
    for (const each of [host, living]) await each.close()
  } finally {
    docker(daemon, 'rm', '--force', ...names)
  }
}

/** FLT-026: two hosts share a daemon. Uids differ, and only the orphans of a killed host are removed. */
export async function sharesDaemonBetweenHosts({ engine }: CaseContext): Promise<void> {
  await using first = startHost(engine)
  await using second = startHost(engine)
  await Promise.all([first, second].map((host) => host.open({ poolSize: 2 })))
  for (let round = 0; round < 5; round += 1) await Promise.all([first, second].map(runTrivialScript))
  const ofSecond = engine.sandboxesOf(second.pid)
  const uids = [...engine.sandboxesOf(first.pid), ...ofSecond].flatMap((id) => engine.processesOf(id)[0]?.uid ?? [])
  assert.equal(new Set(uids).size, uids.length, `two sandboxes have one uid: ${uids.join(', ')}`)
  // A suspended host stays the owner of its containers; a killed host does not.
  second.signal('SIGSTOP')
  first.signal('SIGKILL')
  await first.gone
  await using third = startHost(engine)
  await third.open({ poolSize: 1 })
  await runTrivialScript(third)
  assert.deepEqual(engine.sandboxesOf(first.pid), [], 'the orphans of the killed host were not removed')
  second.signal('SIGCONT')
  await runTrivialScript(second)
  assert.deepEqual(
    ofSecond.filter((id) => engine.processesOf(id).length === 0),
    [],
    'a sandbox of a living host was removed',
  )
  await Promise.all([second.close(), third.close()])
  assert.deepEqual(
    [second, third].flatMap(({ pid }) => engine.sandboxesOf(pid)),
    [],
  )
}
